// The Worker: everything that is asked of the door's public name goes to a data plane.

import { dataplanes } from "./dataplanes.js";
import { forward } from "./forward.js";

export { DataPlane } from "./container.js";

export default {
  /**
   * @param {Request} request
   * @param {import("./dataplanes.js").Settings} env
   * @returns {Promise<Response>}
   */
  fetch(request, env) {
    return forward(request, dataplanes(env), Number(env.MAX_BODY_BYTES));
  },
};
