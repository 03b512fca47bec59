// Adds, lists and deletes a memory over `memchat serve`; the types are made of its own document:
//
//   npm install openapi-fetch
//   npm install --save-dev openapi-typescript typescript @types/node
//   npx openapi-typescript http://127.0.0.1:8766/openapi.json --default-non-nullable=false -o memchat.d.ts
//   npx tsc --strict --target es2022 --module nodenext --types node memories.mts
//   MEMCHAT_TOKEN=... node memories.mjs
import createClient from "openapi-fetch";

import type { paths } from "./memchat.js";

const memchat = createClient<paths>({
  baseUrl: process.env.MEMCHAT_URL ?? "http://127.0.0.1:8766",
  headers: { authorization: `Bearer ${process.env.MEMCHAT_TOKEN}` },
});

const added = await memchat.POST("/api/memories", {
  body: { type: "preference", key: "drinks", value: "green tea", expires_at: "2099-06-30" },
});
if (!added.data) throw new Error(added.error.detail);
console.log(`added: ${added.data.key}: ${added.data.value}`);

const listed = await memchat.GET("/api/memories", { params: { query: { query: "tea" } } });
for (const memory of listed.data?.items ?? []) console.log(`listed: ${memory.key}: ${memory.value}`);

const path = { memory_id: added.data.id };
const deleted = await memchat.DELETE("/api/memories/{memory_id}", { params: { path } });
console.log(`deleted: ${deleted.response.ok}`);

const gone = await memchat.GET("/api/memories/{memory_id}", { params: { path } });
console.log(`now: ${gone.error?.code}`);
