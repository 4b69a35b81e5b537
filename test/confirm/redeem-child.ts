/**
 * One process of several that share a state file. Reads JSON lines {token} from standard input and redeems each; every redemption
 * that may run the call leaves a line in the file of effects, the place of the PCE. Answers each line with {n, outcome}.
 * Arguments: the state file, the file of effects, the instant of its clock.
 */
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { createTokens } from '../../plugins/confirm/tokens.js'
import { openState } from '../../storage/state/open-state.js'
import { CHILD_CALL, childConfig, SHOWN } from './child-call.js'

const [statePath = '', effectsPath = '', instant = ''] = process.argv.slice(2)
const now = () => Number(instant)
const { usedTokens, challenges } = openState(statePath, { now, variable: 'MCP_STATE_PATH' })
const confirmations = createTokens({ ...childConfig, usedTokens, challenges, now })

async function redeem(token: string): Promise<string> {
  const reading = confirmations.read(token, CHILD_CALL)
  if (reading.state !== 'signed') return reading.state
  const outcome = await confirmations.spend(reading.token, () => Promise.resolve(SHOWN))
  if (outcome === 'spent') appendFileSync(effectsPath, `${reading.token.jti}\n`)
  return outcome
}

process.stdout.write('"ready"\n')
for await (const line of createInterface({ input: process.stdin })) {
  const { n, token } = JSON.parse(line) as { n: number; token: string }
  process.stdout.write(`${JSON.stringify({ n, outcome: await redeem(token) })}\n`)
}
