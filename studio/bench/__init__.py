"""`layby bench`: what it measures from outside, on real servers, and how it reports all figures."""
