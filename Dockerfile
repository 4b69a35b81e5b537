# The HTTP server as a small image: production modules, compiled code, no root.
#
# It listens on 127.0.0.1:8080 inside its network namespace, because the server speaks plain HTTP: put the TLS-terminating proxy
# into the same namespace (a sidecar in the pod, or `network_mode: service:proxy`), or share a Unix socket with it by passing
# `--socket /run/svc-mcp/http.sock` instead of the default arguments. Nothing is exposed, so there is no EXPOSE.
# stdio: docker run -i --entrypoint node svc-mcp dist/stdio.js
#
# In a company's network (docs/deploy.md): NODE_IMAGE is where the base image is, and two secrets, which stay in no layer and no
# history, are for npm: `ca`, the certificates that it trusts besides Node.js's own, and `npmrc`, a configuration with the registry to ask.

ARG NODE_VERSION=24
ARG NODE_IMAGE=docker.io/library/node

FROM ${NODE_IMAGE}:${NODE_VERSION}-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=secret,id=ca --mount=type=secret,id=npmrc \
    NODE_EXTRA_CA_CERTS=$(ls /run/secrets/ca 2>/dev/null) NPM_CONFIG_USERCONFIG=/run/secrets/npmrc npm ci
COPY . .
# People run the simulator on their own machine; the image serves a real PCE.
RUN npm run build && rm -r dist/pce-simulator dist/*/pce-simulator

FROM ${NODE_IMAGE}:${NODE_VERSION}-slim AS modules
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=secret,id=ca --mount=type=secret,id=npmrc \
    NODE_EXTRA_CA_CERTS=$(ls /run/secrets/ca 2>/dev/null) NPM_CONFIG_USERCONFIG=/run/secrets/npmrc npm ci --omit=dev

FROM ${NODE_IMAGE}:${NODE_VERSION}-slim
LABEL org.opencontainers.image.title="svc-mcp" \
      org.opencontainers.image.description="Model Context Protocol server for a policy compute engine (PCE)" \
      org.opencontainers.image.licenses="Apache-2.0"
# Memory that analyses have freed goes back to the system; the GNU C library would keep most of it (D310).
ENV NODE_ENV=production MALLOC_MMAP_THRESHOLD_=131072
WORKDIR /app
COPY --from=modules /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json CHANGELOG.md LICENSE ./
# The state file, ./data/keystore.db or ./data/state.db by default, and the command for `docker exec`. A new volume takes owner and mode from here.
RUN install -d -m 0700 -o 1000 -g 1000 /app/data && ln -s /app/dist/http.js /usr/local/bin/svc-mcp-http
VOLUME /app/data
# The image's own unprivileged user, by number, so that a cluster can verify that it is not root.
USER 1000:1000
# For the default port; run with --no-healthcheck, or a check of your own, where the arguments are others.
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/http.js"]
CMD ["--host", "127.0.0.1", "--port", "8080"]
