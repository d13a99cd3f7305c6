"""How popular programs are told about the local server: text to paste, with address, key and model filled in.

Pure; any thread. To add a program: one row in SNIPPETS.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

NO_KEY = "none"
"""For clients that insist on a key where the server asks for none."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One program, and what goes where. `$url` ends in /v1, `$base` does not."""

    program: str
    where: str
    """Where the text belongs, as one sentence."""
    language: str
    template: str

    def filled(self, base: str, key: str, model: str) -> str:
        """The text for a server at `base`. An empty key becomes NO_KEY."""
        return Template(self.template).substitute(
            url=f"{base}/v1", base=base, key=key or NO_KEY, model=model or "MODEL"
        )


SNIPPETS = (
    Snippet(
        "Python (openai)",
        "In a program, with the openai package.",
        "python",
        """from openai import OpenAI

client = OpenAI(base_url="$url", api_key="$key")
reply = client.chat.completions.create(
    model="$model",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(reply.choices[0].message.content)
""",
    ),
    Snippet(
        "JavaScript (openai)",
        "In a program, with the openai package of npm.",
        "javascript",
        """import OpenAI from "openai";

const client = new OpenAI({ baseURL: "$url", apiKey: "$key" });
const stream = await client.chat.completions.create({
  model: "$model",
  messages: [{ role: "user", content: "Hello!" }],
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
}
""",
    ),
    Snippet(
        "curl",
        "In a terminal.",
        "bash",
        """curl $url/chat/completions \\
  -H "Authorization: Bearer $key" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "$model", "messages": [{"role": "user", "content": "Hello!"}]}'
""",
    ),
    Snippet(
        "Continue",
        "In ~/.continue/config.yaml.",
        "yaml",
        """models:
  - name: Layby
    provider: openai
    model: $model
    apiBase: $url
    apiKey: $key
    roles: [chat, edit]
""",
    ),
    Snippet(
        "Open WebUI",
        "Under Admin Panel, Settings, Connections, as an OpenAI connection; or as variables of its container.",
        "bash",
        """OPENAI_API_BASE_URL=$url
OPENAI_API_KEY=$key
""",
    ),
    Snippet(
        "Zed",
        "In Zed's settings.json; it asks for the key itself, among its language model providers.",
        "json",
        """{
  "language_models": {
    "openai_compatible": {
      "Layby": {
        "api_url": "$url",
        "available_models": [{ "name": "$model", "max_tokens": 8192 }]
      }
    }
  }
}
""",
    ),
    Snippet(
        "VS Code",
        "In Copilot Chat under Manage Models, as a custom endpoint that speaks OpenAI's protocol.",
        "json",
        """{
  "name": "Layby",
  "vendor": "customendpoint",
  "apiKey": "$key",
  "models": [
    { "id": "$model", "name": "$model", "url": "$url/chat/completions" }
  ]
}
""",
    ),
    Snippet(
        "LangChain",
        "In a program, with the langchain-openai package.",
        "python",
        """from langchain_openai import ChatOpenAI

model = ChatOpenAI(base_url="$url", api_key="$key", model="$model")
print(model.invoke("Hello!").content)
""",
    ),
)
