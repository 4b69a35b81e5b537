// `npm run pce-sim`: plain JavaScript, because on a fresh clone nothing is installed yet. Then everything happens in this process.
import './ensure-install.mjs'
import { endWithNpm } from './end-with-npm.mjs'

endWithNpm(() => process.kill(process.pid, 'SIGTERM'))
const { register } = await import('tsx/esm/api')
register()
await import('../pce-simulator/pce-sim.ts')
