// A data plane as a container: one process, which has no state, and a certificate by which control knows it.

import { Container } from "@cloudflare/containers";

/** The files that the data plane reads its identity from, each with the secret of the Worker that holds it. */
const FILES = [
  ["CONTROL_TLS_CA", "ca.pem"],
  ["CONTROL_TLS_CERT", "dataplane.pem"],
  ["CONTROL_TLS_KEY", "dataplane.key"],
];
const FOLDER = "/run/gitdoor";

/** Writes the files, forgets the variables, and becomes the data plane. */
const START = [
  `umask 077 && mkdir -p ${FOLDER}`,
  ...FILES.map(([secret, file]) => `printf '%s\\n' "$${secret}" >${FOLDER}/${file}`),
  `unset ${FILES.map(([secret]) => secret).join(" ")}`,
  "exec gitdoor-dataplane",
].join(" && ");

export class DataPlane extends Container {
  defaultPort = 8443;
  // Longer than a push may take to the forge's answer, so that none is asleep that still carries one.
  sleepAfter = "30m";
  entrypoint = ["/bin/sh", "-c", START];

  /**
   * @param {DurableObjectState} ctx
   * @param {import("./dataplanes.js").Settings} env
   */
  constructor(ctx, env) {
    super(ctx, env);
    this.envVars = {
      GITDOOR_LISTEN: "0.0.0.0:8443",
      GITDOOR_PUBLIC_HOST: env.PUBLIC_HOST,
      GITDOOR_CONTROL: env.CONTROL,
      // The platform waits a quarter of an hour between SIGTERM and SIGKILL.
      GITDOOR_DRAIN_TIMEOUT: "10m",
      GITDOOR_LOG_FORMAT: "json",
      // Nobody but the Worker reaches a container's port.
      GITDOOR_SHIM: "0.0.0.0/0,::/0",
      ...Object.fromEntries(FILES.map(([secret, file]) => [`GITDOOR_${secret}`, `${FOLDER}/${file}`])),
      ...Object.fromEntries(FILES.map(([secret]) => [secret, env[secret]])),
    };
  }
}
