# The Worker in the runtime that Cloudflare runs, in front of two data planes whose addresses are given at the start:
#   workerd serve --socket-addr door=127.0.0.1:0 --external-addr dataplane-0=... --external-addr dataplane-1=... --control-fd 1
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "shim", worker = .shim),
    (name = "dataplane-0", external = (http = (style = host))),
    (name = "dataplane-1", external = (http = (style = host))),
  ],
  sockets = [(name = "door", http = (style = host), service = "shim")],
);

const shim :Workerd.Worker = (
  modules = [
    (name = "index.js", esModule = embed "../src/index.js"),
    (name = "dataplanes.js", esModule = embed "../src/dataplanes.js"),
    (name = "forward.js", esModule = embed "../src/forward.js"),
    (name = "refusal.js", esModule = embed "../src/refusal.js"),
    (name = "container.js", esModule = embed "../src/container.js"),
    (name = "@cloudflare/containers", esModule = embed "../node_modules/@cloudflare/containers/dist/index.js"),
    (name = "@cloudflare/lib/container", esModule = embed "../node_modules/@cloudflare/containers/dist/lib/container.js"),
    (name = "@cloudflare/lib/helpers", esModule = embed "../node_modules/@cloudflare/containers/dist/lib/helpers.js"),
    (name = "@cloudflare/lib/utils", esModule = embed "../node_modules/@cloudflare/containers/dist/lib/utils.js"),
  ],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "MAX_BODY_BYTES", fromEnvironment = "MAX_BODY_BYTES"),
    (name = "DATAPLANES", text = "DATAPLANE_0, DATAPLANE_1"),
    (name = "DATAPLANE_0", service = "dataplane-0"),
    (name = "DATAPLANE_1", service = "dataplane-1"),
  ],
);
