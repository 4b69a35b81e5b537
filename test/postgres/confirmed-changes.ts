/** Changes that can be counted at the PCE: each confirmed, with a description of its own, and for each what its redemptions came to. */
import type { Test } from 'tap'
import type { Json } from '../edge/support/call-tool.js'
import { within } from '../edge/support/within.js'
import { createCaller } from '../pce-simulator/call-pce.js'
import type { Replicas } from './replicas.js'

export interface Change {
  args: { hrefs: string[]; change_description: string }
  token: string
  /** What each call with the token came to: `ran`, an error code, or null where no answer came. */
  outcomes: (string | null)[]
}

export interface Expectations {
  /** Error codes that a call may meet while the fault lasts. */
  allowed?: readonly string[]
}

/** Counts what the PCE was told from now on. `token` is that of an admin who has registered a key. */
export function countChanges({ world: { pce }, callTool, confirm }: Replicas, token: string) {
  const askPce = createCaller(pce.simulator)
  /** By description, how often the PCE made it active. */
  const told = new Map<string, number>()

  function timesAtPce(description: string): number {
    for (const { method, path, body } of pce.simulator.requests.splice(0)) {
      if (method !== 'POST' || !path.endsWith('/sec_policy')) continue
      const name = (body as { update_description: string }).update_description
      told.set(name, (told.get(name) ?? 0) + 1)
    }
    return told.get(description) ?? 0
  }

  /** A draft that nobody else touches, as arguments of provision-policy. */
  async function draft(description: string): Promise<Change['args']> {
    const { body, status } = await askPce('POST', `/orgs/${pce.simulator.orgId}/sec_policy/draft/ip_lists`, {
      name: description,
      ip_ranges: [{ from_ip: '10.0.0.0/8' }],
    })
    if (status !== 201) throw new Error(`no draft: ${JSON.stringify(body)}`)
    return { hrefs: [(body as { href: string }).href], change_description: description }
  }

  /** Asks, and mints: the change, or what stood in its way. */
  async function tryConfirm(replica: number | null, description: string): Promise<Change | { error: string | null }> {
    const args = await draft(description)
    const asked = await answerOf(callTool(replica, token, 'provision-policy', args))
    if (asked === null) return { error: null }
    if (asked.error !== 'confirm_required') return { error: asked.error ?? 'ran unasked' }
    const minted = await answerOf(confirm(replica, token, asked.confirm.body).then(({ json }) => json))
    if (typeof minted?.confirm_token !== 'string') return { error: minted?.error ?? null }
    return { args, token: minted.confirm_token, outcomes: [] }
  }

  async function redeem(replica: number | null, change: Change): Promise<string | null> {
    const meta = { confirm_token: change.token }
    const answer = await answerOf(callTool(replica, token, 'provision-policy', change.args, { meta }))
    const outcome = answer === null ? null : typeof answer.version === 'number' ? 'ran' : String(answer.error)
    change.outcomes.push(outcome)
    return outcome
  }

  return {
    timesAtPce,
    draft,
    tryConfirm,
    redeem,

    /** Like `tryConfirm`, where nothing stands in its way. */
    async confirmOne(replica: number | null, description: string): Promise<Change> {
      const change = await tryConfirm(replica, description)
      if ('error' in change) throw new Error(`${description}: not confirmed: ${change.error}`)
      return change
    },

    /**
     * When nothing is wrong any more: fails unless the change ran at most once, exactly once where somebody was told so, and its token is used
     * for everybody in the end. Says what has become of it: it `ran`, was `lost` with its token, or only ran now (`unused`).
     */
    async judge(t: Test, change: Change, { allowed = [] }: Expectations = {}): Promise<'ran' | 'lost' | 'unused'> {
      const { change_description: description } = change.args
      const seen = [...change.outcomes]
      const before = timesAtPce(description)
      if (seen.some((outcome) => !['ran', 'confirm_token_replay', null, ...allowed].includes(outcome)))
        t.fail(`${description}: ${seen.join()}`)
      const ran = seen.filter((outcome) => outcome === 'ran').length
      if (ran > 1 || before > 1 || (ran === 1 && before !== 1))
        t.fail(`${description}: ${seen.join()}, ${before} times at the PCE`)
      const late = await redeem(null, change)
      const isUsed = before === 1 || seen.includes('confirm_token_replay')
      if (late !== 'confirm_token_replay' && (isUsed || late !== 'ran'))
        t.fail(`${description}: ${seen.join()}, and then ${late}`)
      const again = await redeem(null, change)
      if (again !== 'confirm_token_replay') t.fail(`${description}: in the end ${again}`)
      const after = timesAtPce(description)
      if (after > 1 || (late === 'ran' && after !== 1)) t.fail(`${description}: in the end ${after} times at the PCE`)
      return after === 0 ? 'lost' : late === 'ran' ? 'unused' : 'ran'
    },
  }
}

/** The answer, within 30 s; null where the connection broke before it was whole, or nginx had lost the replica. */
export async function answerOf(call: Promise<Json>): Promise<Json> {
  try {
    return await within(call, 'an answer')
  } catch (error) {
    if (
      /ECONNRESET|ECONNREFUSED|ENOENT|EPIPE|socket hang up|aborted|HTTP 50[24]: <html>|Unexpected token '<'/.test(
        String(error),
      )
    )
      return null
    throw error
  }
}
