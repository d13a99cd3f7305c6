// The openai package under Node against the server: openai_client.cjs ADDRESS chat|tools.
// Timeouts and retries are the package's own. Prints JSON.
"use strict";

const path = require("node:path");
const { createRequire } = require("node:module");

const root = path.resolve(__dirname, "../../../..");
const OpenAI = createRequire(path.join(root, ".cache/node/package.json"))("openai");

const [address, what] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none" });
const model = "smollm2-135m";
const messages = [{ role: "user", content: "What is the capital of France?" }];
const ask = { model, messages, temperature: 0, max_tokens: 100 };

const tool = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a town.",
    parameters: {
      type: "object",
      properties: { town: { type: "string", maxLength: 20 } },
      required: ["town"],
      additionalProperties: false,
    },
  },
};

async function whole() {
  return (await client.chat.completions.create(ask)).choices[0].message.content;
}

async function streamed() {
  let text = "";
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
    text += chunk.choices[0]?.delta?.content ?? "";
  }
  return text;
}

async function helped() {
  return await client.chat.completions.stream(ask).finalContent();
}

async function responded() {
  const stream = client.responses.stream({
    model, input: messages[0].content, temperature: 0, max_output_tokens: 100,
  });
  return (await stream.finalResponse()).output_text;
}

const jobs = {
  async chat() {
    return await Promise.all([whole(), streamed(), helped(), responded()]);
  },
  async tools() {
    const question = [{ role: "user", content: "What is the weather in Paris?" }];
    const stream = client.chat.completions.stream({
      ...ask, messages: question, tools: [tool], tool_choice: "required", parallel_tool_calls: false,
    });
    const [call] = (await stream.finalMessage()).tool_calls;
    return { name: call.function.name, arguments: JSON.parse(call.function.arguments) };
  },
};

jobs[what]().then((value) => process.stdout.write(JSON.stringify(value)));
