// `npm run pce-sim` installs what is missing and then runs the simulator in this process. It is plain JavaScript,
// because nothing is installed yet in a fresh clone.
import './ensure-install.mjs'
import { endWithNpm } from './end-with-npm.mjs'

endWithNpm(() => process.kill(process.pid, 'SIGTERM'))
const { register } = await import('tsx/esm/api')
register()
await import('../pce-simulator/pce-sim.ts')
