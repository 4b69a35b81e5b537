/**
 * The service in a separate process, for one confirmed call of provision-policy. Arguments: the directory of the state file, the
 * instant of its clock, the token; the PCE is in the environment variable PCE.
 */
import t from 'tap'
import { startConfirming } from './harness.js'

const [directory = '', instant = '', token = ''] = process.argv.slice(2)
const simulator = JSON.parse(process.env.PCE ?? '{}') as never
const bench = await startConfirming(t, { after: { clock: { now: Number(instant) }, simulator, directory } })
await bench.call('provision-policy', {}, { token })
