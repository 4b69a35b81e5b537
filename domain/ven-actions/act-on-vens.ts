import { PceApiError } from '../../pce-client/index.js'
import type { ActionError, FirewallRestore, Ven } from '../../schemas/pce/ven.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ToolContext } from '../call.js'
import { mayHaveHappened, reasonOf } from '../inventory/pce-errors.js'
import { countOf } from '../text/describe-numbers.js'
import { isUpTo } from '../vens/describe-ven.js'
import { readVens, type ChosenVen } from './choose-vens.js'

/** What a call does to VENs. */
export type VenAction =
  | { kind: 'suspend' | 'resume' | 'report' }
  | { kind: 'unpair'; firewall: FirewallRestore }
  | { kind: 'upgrade'; release: string }

/**
 * The outcome for one VEN. `done`: reading the VEN back showed the requested state. `accepted`: the PCE accepted the
 * request, but its result is not there yet or cannot be read. `already`: the VEN was in this state before. `left`: the
 * action cannot apply; the note says why. `differs`: the PCE confirmed the action, but another state was read back.
 * `unverified`: the PCE's answer was lost.
 */
export type VenOutcomeWord =
  'done' | 'accepted' | 'already' | 'left' | 'failed' | 'differs' | 'unverified' | 'not_attempted'

export interface VenOutcome {
  ven: ChosenVen
  outcome: VenOutcomeWord
  /** The state that was read back. */
  now?: string | null
  note?: string
}

export interface VensActedOn {
  outcomes: readonly VenOutcome[]
  /** Why no further request was sent: an error, or the reason of a cancellation; null if neither happened. */
  stopped: unknown
  /** The first error with which the PCE refused a request for a single VEN; null if there was none. */
  refused: unknown
}

/** Returns the outcome that says why the action has no effect on a VEN; null if the action should be carried out. */
export function whyNot(action: VenAction, ven: ChosenVen): Pick<VenOutcome, 'outcome' | 'note'> | null {
  const { status, version } = ven
  const already = { outcome: 'already' } as const
  const left = (note: string) => ({ outcome: 'left', note }) as const
  switch (action.kind) {
    case 'suspend':
      return status === 'suspended' ? already : status === 'uninstalled' ? left('It was uninstalled.') : null
    case 'resume':
      if (status === 'active') return already
      return status === 'suspended' ? null : left(`Its status is ${status ?? 'not known'}, not suspended.`)
    case 'unpair':
      return ven.mayUnpair === false ? left('The PCE says that it may not be unpaired (unpair_allowed).') : null
    case 'upgrade':
      if (version === action.release) return already
      if (ven.upgradeTo === action.release) return { ...already, note: 'The upgrade is under way.' }
      return version !== null && !isUpTo(version, action.release)
        ? left('It runs a newer release, and PCEs refuse to go back.')
        : null
    case 'report':
      return null
  }
}

/** Returns the part of a VEN's state that the action changes: its release or its status. */
export const stateOf = ({ kind }: VenAction, { status, version, upgradeTo }: Omit<ChosenVen, 'workload'>) =>
  kind === 'upgrade' ? (upgradeTo === null ? version : `${version ?? 'unknown'}, upgrade to ${upgradeTo}`) : status

/** Returns the VENs on which the action is carried out. */
export const toActOn = (action: VenAction, vens: readonly ChosenVen[]): ChosenVen[] =>
  vens.filter((ven) => whyNot(action, ven) === null)

/** Returns the requests that the action sends, in order (P32, P124, P126). */
export function planVenRequests(action: VenAction, vens: readonly ChosenVen[], orgId: string): PlannedRequest[] {
  const acted = toActOn(action, vens)
  const refs = acted.map(({ href }) => ({ href }))
  const org = `/orgs/${orgId}`
  const put = (path: string, body: object) => (refs.length === 0 ? [] : [{ method: 'PUT', path, body }])
  switch (action.kind) {
    case 'unpair':
      return put(`${org}/vens/unpair`, { firewall_restore: action.firewall, vens: refs })
    case 'upgrade':
      return put(`${org}/vens/upgrade`, { release: action.release, vens: refs })
    case 'report':
      return refs.map((ven) => ({ method: 'POST', path: `${org}/support_report_requests`, body: { ven } }))
    default: {
      const status = STATUS[action.kind]
      return acted.map(({ href }) => ({ method: 'PUT', path: href, body: { status } }))
    }
  }
}

const STATUS = { suspend: 'suspended', resume: 'active' } as const

/**
 * HTTP statuses by which the PCE refuses a request because of the VEN in it, and not because of the caller or
 * altogether.
 */
const OF_ONE: readonly number[] = [404, 406]

type Ctx = Pick<ToolContext<true>, 'pce' | 'signal' | 'beforeWriting' | 'progress'>
type Said = Pick<VenOutcome, 'outcome' | 'note'>

/**
 * Carries out the action and reads the VENs back. If the PCE refuses the request for one VEN, the other VENs still
 * follow. In all other cases, no further request is sent after one fails, after the call is cancelled, or when the
 * server stops. Throws only if nothing was written: the error of the first request, if this request certainly had no
 * effect, or the reason of an earlier cancellation.
 */
export async function actOnVens(ctx: Ctx, action: VenAction, vens: readonly ChosenVen[]): Promise<VensActedOn> {
  const acted = toActOn(action, vens)
  const said = new Map<string, Said>()
  let stopped: unknown = null
  let refused: unknown = null
  ctx.beforeWriting.throwIfAborted()
  const isTogether = action.kind === 'unpair' || action.kind === 'upgrade'
  const chunks = isTogether ? (acted.length === 0 ? [] : [acted]) : acted.map((ven) => [ven])
  for (const chunk of chunks) {
    if (ctx.beforeWriting.aborted) {
      stopped = ctx.beforeWriting.reason
      break
    }
    try {
      const errors = await send(ctx, action, chunk)
      for (const ven of chunk) said.set(ven.href, answerFor(ven, errors))
    } catch (error) {
      const isOfOne = error instanceof PceApiError && OF_ONE.includes(error.status) && !mayHaveHappened(error)
      if (!isTogether && isOfOne) {
        refused ??= error
        for (const { href } of chunk) said.set(href, { outcome: 'failed', note: reasonOf(error) })
        continue
      }
      if (said.size === 0 && !mayHaveHappened(error)) throw error
      const outcome = mayHaveHappened(error) ? 'unverified' : 'failed'
      for (const { href } of chunk) said.set(href, { outcome, note: reasonOf(error) })
      stopped = error
      break
    }
    ctx.progress({ progress: said.size, total: acted.length, message: `${countOf(said.size, 'VEN')} done.` })
  }
  const now = said.size === 0 || action.kind === 'report' ? null : await lookAgain(ctx, [...said.keys()])
  return { outcomes: vens.map((ven) => settle(action, ven, said.get(ven.href), now)), stopped, refused }
}

async function send({ pce }: Ctx, action: VenAction, vens: readonly ChosenVen[]): Promise<ActionError[]> {
  const refs = vens.map(({ href }) => ({ href }))
  switch (action.kind) {
    case 'unpair':
      return pce.unpairVens(refs, action.firewall)
    case 'upgrade':
      return pce.upgradeVens(refs, action.release)
    case 'report':
      for (const ven of refs) await pce.post('/support_report_requests', { json: { ven } })
      return []
    default:
      for (const ven of refs) await pce.vens.update(ven, { status: STATUS[action.kind] })
      return []
  }
}

/** Finds the PCE's answer for one VEN. An error that names no VEN may concern any of them. */
function answerFor({ href }: ChosenVen, errors: readonly ActionError[]): Said {
  const own = errors.filter(({ hrefs }) => hrefs.includes(href))
  const reasons = own.map(({ token, message }) => [token, message].filter((text) => text !== '').join(': '))
  if (reasons.length > 0) return { outcome: 'failed', note: reasons.join('; ') }
  const unnamed = errors.filter(({ hrefs }) => hrefs.length === 0)
  if (unnamed.length === 0) return { outcome: 'accepted' }
  return {
    outcome: 'unverified',
    note: `The PCE did not say whom it means: ${unnamed.map((one) => one.message).join('; ')}`,
  }
}

async function lookAgain({ pce, signal }: Ctx, hrefs: readonly string[]): Promise<ReadonlyMap<string, Ven> | null> {
  try {
    return await readVens({ pce, signal }, hrefs)
  } catch {
    // Nothing is thrown, because the writes have happened and must be reported. The outcome of each VEN says that it
    // could not be read back.
    return null
  }
}

/** Determines the outcome for one VEN from the PCE's answer and the VEN's state now. */
function settle(
  action: VenAction,
  ven: ChosenVen,
  said: Said | undefined,
  now: ReadonlyMap<string, Ven> | null,
): VenOutcome {
  const not = whyNot(action, ven)
  if (not !== null) return { ven, ...not }
  if (said === undefined) return { ven, outcome: 'not_attempted' }
  if (action.kind === 'report') return { ven, ...said }
  if (now === null) return { ven, ...said, note: said.note ?? 'It could not be read back.' }
  const stored = now.get(ven.href)
  const isGone = stored === undefined || stored.status === 'uninstalled'
  const { status = null, version = null, upgrade_target_version: target = null } = stored ?? {}
  const state = stored === undefined ? 'gone' : stateOf(action, { ...ven, status, version, upgradeTo: target })
  const reached = {
    suspend: status === 'suspended',
    resume: status === 'active',
    unpair: isGone,
    upgrade: action.kind === 'upgrade' && [version, target].includes(action.release),
  }[action.kind]
  if (reached) {
    const note = said.outcome === 'failed' ? { note: `It reads back so, though the PCE answered: ${said.note}` } : {}
    return { ven, outcome: 'done', now: state, ...note }
  }
  if (said.outcome !== 'accepted') return { ven, ...said, now: state }
  if (action.kind === 'unpair')
    return { ven, outcome: 'accepted', now: state, note: 'The PCE took it, and still lists the VEN.' }
  return { ven, outcome: 'differs', now: state, note: 'The PCE said it was done, and shows another state.' }
}
