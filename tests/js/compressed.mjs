// Unpacks compressed answers with the decoders of Node, in one go and as a stream.
import { get } from "node:http";
import zlib from "node:zlib";

const url = process.argv[2] + "/openapi.json";

function body(coding) {
  return new Promise((done) =>
    get(url, { headers: { "accept-encoding": coding } }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => done([answer.headers["content-encoding"] ?? "", Buffer.concat(parts)]));
    }),
  );
}

function streamed(stream, data) {
  return new Promise((done, failed) => {
    const parts = [];
    stream.on("data", (part) => parts.push(part)).on("end", () => done(Buffer.concat(parts))).on("error", failed);
    for (let at = 0; at < data.length; at += 1000) stream.write(data.subarray(at, at + 1000));
    stream.end();
  });
}

const [, plain] = await body("identity");
const found = {};
for (const [coding, whole, stream] of [
  ["gzip", zlib.gunzipSync, zlib.createGunzip],
  ["zstd", zlib.zstdDecompressSync, zlib.createZstdDecompress],
]) {
  const [sent, data] = await body(coding);
  found[coding] = sent === coding && whole(data).equals(plain) && (await streamed(stream(), data)).equals(plain);
}
console.log(JSON.stringify(found));
