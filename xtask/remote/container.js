// Makes a container in Azure's emulator, with the key that every emulator has.
const crypto = require("crypto");
const http = require("http");

const port = process.argv[2];
const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2023-11-03" };
const named = Object.keys(headers).sort().map((name) => `${name}:${headers[name]}\n`).join("");
const resource = `/${account}/${account}/bucket\nrestype:container`;
const text = `PUT\n\n\n\n\n\n\n\n\n\n\n\n${named}${resource}`;
const signature = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
headers.Authorization = `SharedKey ${account}:${signature}`;
headers["Content-Length"] = 0;
const path = `/${account}/bucket?restype=container`;
http.request({ host: "127.0.0.1", port, path, method: "PUT", headers }, (answer) => {
  answer.resume();
  process.exitCode = answer.statusCode === 201 ? 0 : 1;
  if (process.exitCode) console.error(`the container was not made: ${answer.statusCode}`);
}).end();
