/** People who change and register at all replicas while something happens to these or to their database, and what is owed to them after. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { found } from '../edge/support/within.js'
import { answerOf, countChanges, type Change } from './confirmed-changes.js'
import type { Replicas } from './replicas.js'

/** What calls may come to while there is no database. */
export const UNAVAILABLE = ['state_unavailable', 'keystore_unavailable', 'confirm_unavailable']

export interface LoadOptions {
  /** What calls may come to while it lasts. */
  allowed?: readonly string[]
  /** Whether calls may lose their connection. */
  mayLose?: boolean
  /** Whom they call: each replica by itself, or nginx alone. */
  direct?: boolean
}

export interface Tally {
  /** Changes that ran, by what those who made them know: told so, or not. */
  changes: Record<string, number>
  registered: number
  /** Calls that came to nothing, by error code; `null` for a lost connection. */
  refused: Record<string, number>
}

const CHANGERS = 3
const REGISTRARS = 2
/** Whoever was refused does not try again at once. */
const PAUSE_MS = 50

/**
 * Keeps the load up while `work` runs, then waits until every replica says that it is ready, and fails for anything that ran twice, was
 * acknowledged and lost, or took longer than 30 s. At least one change and one registration succeed before and after `work`; `more`, which it is
 * given, resolves once one more of either has.
 */
export async function underLoad(
  t: Test,
  replicas: Replicas,
  work: (more: () => Promise<void>) => Promise<void>,
  { allowed = [], mayLose = true, direct = true }: LoadOptions = {},
): Promise<Tally> {
  const { world, callTool } = replicas
  const admin = await world.tokenOf('admin')
  const registration = await callTool(null, admin, 'register-pce-credentials', world.pce.registration)
  if (registration.status !== 'ok') throw new Error(JSON.stringify(registration))
  const counting = countChanges(replicas, admin)
  const changes: Change[] = []
  const acknowledged: string[] = []
  const tally: Tally = { changes: {}, registered: 0, refused: {} }
  let isOver = false
  const successes = { changed: 0, registered: 0 }
  const anyone = () => {
    const at = Math.floor(Math.random() * (replicas.replicas.length + 1)) - 1
    return direct && at >= 0 ? at : null
  }
  const refuse = async (code: string | null, what: string) => {
    tally.refused[String(code)] = (tally.refused[String(code)] ?? 0) + 1
    if (code === null ? !mayLose : !allowed.includes(code)) t.fail(`${what}: ${code}`)
    await wait(PAUSE_MS)
  }

  const workers = [
    ...Array.from({ length: CHANGERS }, (_, n) => change(n)),
    ...Array.from({ length: REGISTRARS }, (_, n) => register(n)),
  ]
  const failed = Promise.all(workers)
  failed.catch(() => {})
  await Promise.race([more(), failed])
  await Promise.race([work(more), failed])
  for (const { readiness } of replicas.replicas)
    await found(async () => (await readiness()).status === 200, 'a replica is ready again by itself')
  await Promise.race([more(), failed])
  isOver = true
  await failed

  for (const one of changes) {
    const became = await counting.judge(t, one, { allowed })
    tally.changes[became] = (tally.changes[became] ?? 0) + 1
  }
  for (const sub of acknowledged) {
    const status = await callTool(null, await world.tokenOf(sub), 'check-pce-credentials-status')
    if (status.registered !== true || status.label !== sub)
      t.fail(`${sub}: acknowledged, and now ${JSON.stringify(status)}`)
  }
  return { ...tally, registered: acknowledged.length }

  /** Resolves once one more change has run and one more person has been registered. */
  async function more(): Promise<void> {
    const { changed, registered } = successes
    await found(() => successes.changed > changed && successes.registered > registered, 'calls succeed')
  }

  async function change(worker: number): Promise<void> {
    for (let n = 0; !isOver; n++) {
      const description = `worker ${worker}, change ${n}`
      const made = await counting.tryConfirm(anyone(), description)
      if ('error' in made) {
        await refuse(made.error, description)
        continue
      }
      changes.push(made)
      const outcomes = await Promise.all([counting.redeem(anyone(), made), counting.redeem(anyone(), made)])
      if (outcomes.includes('ran')) successes.changed++
      for (const outcome of outcomes)
        if (outcome !== 'ran' && outcome !== 'confirm_token_replay') await refuse(outcome, description)
    }
  }

  async function register(worker: number): Promise<void> {
    for (let n = 0; !isOver; n++) {
      const sub = `registrar ${worker}, person ${n}`
      const args = { ...world.pce.registration, label: sub }
      const answer = await answerOf(callTool(anyone(), await world.tokenOf(sub), 'register-pce-credentials', args))
      if (answer?.status === 'ok') {
        acknowledged.push(sub)
        successes.registered++
      } else await refuse(answer === null ? null : (answer.error ?? JSON.stringify(answer)), sub)
    }
  }
}
