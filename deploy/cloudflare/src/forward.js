// Takes one request to a data plane and its answer back, byte for byte and both ways at once.
//
// Nothing of a body is kept here. A body is touched only where it has no length and so has to be counted.

import { refusal } from "./refusal.js";

/** What a trace context looks like: https://www.w3.org/TR/trace-context/ */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * @param {Request} client
 * @param {import("./dataplanes.js").DataPlane[]} dataplanes the first is asked first
 * @param {number} ceiling most bytes of a request's body
 * @returns {Promise<Response>}
 */
export async function forward(client, dataplanes, ceiling) {
  const length = client.headers.get("Content-Length");
  if (length !== null && !(Number(length) <= ceiling)) {
    return refusal(client, "shim-body-limit", ceiling);
  }
  const counted = client.body && length === null ? counting(client.body, ceiling) : undefined;
  const request = upward(client, counted);
  // What has a body, or may change something, is asked once: whether it was heard is not known.
  const repeatable = client.method === "GET" || client.method === "HEAD";
  for (const dataplane of repeatable ? dataplanes : dataplanes.slice(0, 1)) {
    const answer = await dataplane.fetch(repeatable ? request.clone() : request).catch(() => undefined);
    // Every answer of a data plane has an id. One without is the platform's, of a container that does not run.
    if (answer?.headers.has("X-Request-Id")) {
      return answer;
    }
    await answer?.body?.cancel();
    if (counted?.exceeded) {
      return refusal(client, "shim-body-limit", ceiling);
    }
  }
  return refusal(client, "shim-no-dataplane", ceiling);
}

/**
 * The request as it came, with a trace context and the client's address as the edge saw it; a redirect is the client's to
 * follow.
 * @param {Request} client
 * @param {Counted | undefined} counted
 * @returns {Request}
 */
function upward(client, counted) {
  const headers = new Headers(client.headers);
  if (!TRACEPARENT.test(headers.get("traceparent") ?? "")) {
    headers.set("traceparent", `00-${random(16)}-${random(8)}-01`);
    headers.delete("tracestate");
  }
  // The client's own word goes.
  headers.set("X-Forwarded-For", headers.get("CF-Connecting-IP") ?? "unknown");
  const how = { headers, redirect: /** @type {const} */ ("manual") };
  return new Request(client, counted ? { ...how, body: counted.body, signal: counted.signal } : how);
}

/**
 * @param {number} bytes
 * @returns {string} in hexadecimal
 */
function random(bytes) {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** @typedef {{ body: ReadableStream, signal: AbortSignal, exceeded: boolean }} Counted */

/**
 * A body that ends its request once it is larger than the ceiling.
 * @param {ReadableStream} body
 * @param {number} ceiling
 * @returns {Counted}
 */
function counting(body, ceiling) {
  const abort = new AbortController();
  const counted = { body, signal: abort.signal, exceeded: false };
  let bytes = 0;
  const counter = new TransformStream({
    transform(piece, controller) {
      bytes += piece.byteLength;
      if (!(bytes <= ceiling)) {
        counted.exceeded = true;
        abort.abort();
        controller.error(new Error("the body is larger than the ceiling"));
      } else {
        controller.enqueue(piece);
      }
    },
  });
  counted.body = counter.readable;
  // A client that leaves must cut the request, not leave it open.
  body.pipeTo(counter.writable).catch(() => abort.abort());
  return counted;
}
