// Which data planes there are, and in what order a request tries them.

/**
 * What takes a request to one data plane, whatever host the request's URL names: a container's stub, or a binding.
 * The URL's host is what the data plane reads in `Host`, so it stays the door's public name.
 * @typedef {{ fetch(request: Request): Promise<Response> }} DataPlane
 */

/**
 * The Worker's variables and bindings, as wrangler.jsonc names them.
 * @typedef {{
 *   MAX_BODY_BYTES: string,
 *   INSTANCES?: string,
 *   DATAPLANE?: { idFromName(name: string): unknown, get(id: any): DataPlane },
 *   DATAPLANES?: string,
 *   [binding: string]: any,
 * }} Settings
 */

/**
 * All of them, the one to ask first. Each request draws its own order: no data plane remembers anything of a client.
 * @param {Settings} env
 * @returns {DataPlane[]}
 */
export function dataplanes(env) {
  return shuffled(env.DATAPLANES ? bound(env, env.DATAPLANES) : contained(env));
}

/**
 * The bindings that `DATAPLANES` names: data planes that run elsewhere.
 * @param {Settings} env
 * @param {string} names separated by commas
 * @returns {DataPlane[]}
 */
function bound(env, names) {
  return names.split(",").map((name) => env[name.trim()]);
}

/**
 * The containers, `INSTANCES` of them. One that sleeps is started by being asked.
 * @param {Settings} env
 * @returns {DataPlane[]}
 */
function contained({ DATAPLANE: namespace, INSTANCES: count }) {
  const names = Array.from({ length: Number(count) }, (_, number) => `dataplane-${number}`);
  return namespace ? names.map((name) => namespace.get(namespace.idFromName(name))) : [];
}

/**
 * @template T
 * @param {T[]} all
 * @returns {T[]}
 */
function shuffled(all) {
  const order = all.map((one) => ({ one, key: Math.random() }));
  return order.sort((a, b) => a.key - b.key).map(({ one }) => one);
}
