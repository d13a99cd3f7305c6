// The variants that this library holds, and which of them this CPU can run.
#pragma once

#include "kernels.h"

namespace layby {

const KernelTable* variant_at(int index);            // best first; null behind the last
const KernelTable* variant_named(const char* name);  // null: none
bool runs_here(const KernelTable& variant);

}  // namespace layby
