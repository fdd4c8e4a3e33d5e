// What the shim says for itself: plain text for git, JSON for what speaks to the API.

/** @type {Record<string, { status: number, retry?: string, words: (ceiling: number) => string }>} */
const REFUSALS = {
  "shim-body-limit": {
    status: 413,
    words: (ceiling) => `a request through this address has at most ${ceiling} bytes; push fewer commits at a time`,
  },
  "shim-no-dataplane": {
    status: 503,
    retry: "5",
    words: () => "no data plane answers; this is not about your request, try it again in some seconds",
  },
};

/**
 * @param {Request} client
 * @param {keyof typeof REFUSALS} code
 * @param {number} ceiling
 * @returns {Response}
 */
export function refusal(client, code, ceiling) {
  const { status, retry, words } = REFUSALS[code];
  const headers = new Headers({ "X-Gitdoor-Reason": code, "Cache-Control": "no-store" });
  if (retry) {
    headers.set("Retry-After", retry);
  }
  const message = `gitdoor: ${words(ceiling)}`;
  if (new URL(client.url).pathname.startsWith("/api/")) {
    return Response.json({ message }, { status, headers });
  }
  headers.set("Content-Type", "text/plain; charset=utf-8");
  return new Response(`${message}\n`, { status, headers });
}
