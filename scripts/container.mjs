// `node scripts/container.mjs` installs what is missing, then builds the image with podman and tries it. It is plain
// JavaScript, because nothing is installed yet in a fresh clone.
import './ensure-install.mjs'

const { register } = await import('tsx/esm/api')
register()
await import('./container/build-and-try.ts')
