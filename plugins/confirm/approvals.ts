import { createHash, randomBytes } from 'node:crypto'
import { setImmediate, setTimeout as wait } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import {
  type ApprovalDecision,
  type ApprovalDesk,
  type ApprovalEvent,
  type ApprovalPart,
  type ApprovalRequest,
  type ApprovalState,
  type AskedApproval,
  type DecisionOrigin,
  type DecisionWatch,
  LONGEST_NOTE,
} from '../../schemas/approvals.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Identity, Mode, Owner, Role } from '../../schemas/caller.js'
import type { ApprovalConfig, ConfirmConfig } from '../../schemas/config.js'
import type { ConfirmedCall } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { Meter } from '../../schemas/metrics.js'
import type { ApprovalEnding, ApprovalRow, Approvals as ApprovalRows } from '../../schemas/state.js'
import type { AnyTool } from '../../tools/define.js'
import { attempt } from './attempt.js'
import { keyOf, ownerKey } from './confirmed-call.js'
import { redeem, type Redemption, type Yes } from './life.js'
import { type Ended, endOnce, rememberEnded } from './remember-ended.js'
import { overridesOf } from './overrides.js'
import { createSeal, parseSealed } from './seals.js'

export interface ApprovalsOptions {
  config: ConfirmConfig & { approval: ApprovalConfig }
  /**
   * Identifies the server and its stored state, as in confirm tokens. Approvals for any other server or state are not
   * accepted.
   */
  audience: string
  rows: ApprovalRows
  /**
   * A memory of the approvals, confirm tokens and question states that ended in this process. If it is absent, a new
   * memory is created for these approvals alone.
   */
  endedHere?: Ended
  /** Returns a person's role according to the current mapping of groups to roles. */
  roleOf: (identity: Identity) => Role | null
  tools: readonly Pick<AnyTool, 'name' | 'roles'>[]
  /** Writes an audit entry. Resolves when the entry is on the disk, and rejects if it cannot be written. */
  audit: (entry: AuditEntry) => Promise<void>
  log: { error: (facts: object, message: string) => void }
  /** Returns true if the access of the owner was revoked after the given time (`AccessCheck.isRevokedSince`). */
  isRevokedSince?: (owner: Owner, at: number) => Promise<boolean>
  mode: Mode
  publicUrl: string
  /** Returns milliseconds since the epoch. */
  now: () => number
  meter?: Meter
}

/** The facts that the gate adds to a call in order to ask a person about it. */
export type ApprovalQuestion = Pick<
  ApprovalRequest,
  'boundTo' | 'shown' | 'ownerName' | 'client' | 'requestId' | 'guardrails' | 'persons'
>

export type ApprovalService = ReturnType<typeof createApprovals>
/**
 * The part of the approval service that the gate uses. Every method rejects with ToolError `confirm_unavailable` if the
 * store does not answer.
 */
export type Approvals = ApprovalService['approvals']

const ROUTE = '/approve'
const ID = /^[\w-]{43}$/
/**
 * MOST_LISTED is the maximum number of open approval requests in the list that a person sees. In the list that an admin
 * sees, MOST_LISTED_OF_EACH is the maximum number of open requests by each asker.
 */
const MOST_LISTED = 100
const MOST_LISTED_OF_EACH = 10
/**
 * Maximum number of rows that are skipped, because this server did not write them or they do not belong there, while a
 * list of approval requests is compiled.
 */
const MOST_PASSED_OVER = 1000
/** Maximum number of approval requests on one page of the list of all live requests. */
const MOST_ON_PAGE = 25
const UNAUDITED = 'The audit log cannot be written, so nothing was decided.'
/** Interval, in milliseconds, at which the store is polled for a decision that another replica may have recorded. */
const LOOK_MS = 2000
const SWEEP_MS = 30_000
/**
 * Maximum number of remembered pairs of a person and a request that was shown to this person. They are remembered so
 * that reloading a page does not write a second audit entry.
 */
const MOST_SHOWN_REMEMBERED = 10_000

/**
 * Creates the service that manages people's approvals. The gate uses it, and so do the pages on which people decide and
 * the calls that wait for a decision. It determines who may decide about what, and ensures that each approval permits
 * one run of exactly what was shown (D143, D145).
 */
export function createApprovals(options: ApprovalsOptions) {
  const { config, audience, rows, endedHere = rememberEnded(), roleOf, now, mode, meter, log } = options
  const { isRevokedSince } = options
  const { method, ttlSeconds } = config.approval
  const requests = createSeal('request', config)
  const decisions = createSeal('decision', config)
  /** Returns the facts with which a decision is signed: the audience, and a digest of the complete request. */
  const aboutOf = ({ request }: Pick<ApprovalRow, 'request'>) => [
    audience,
    createHash('sha256').update(request).digest('hex'),
  ]
  const rolesOf = new Map(options.tools.map(({ name, roles }) => [name, roles]))
  const waiting = new Map<string, Set<() => void>>()
  const shownTo = new LRUCache<string, true>({ max: MOST_SHOWN_REMEMBERED })

  const requestOf = ({ id, request }: ApprovalRow) =>
    parseSealed<ApprovalRequest>(requests.open(request, [audience, id]))

  const openDecision = (row: ApprovalRow, sealed: string | null) =>
    sealed === null ? null : parseSealed<ApprovalDecision>(decisions.open(sealed, aboutOf(row)))
  const decisionOf = (row: ApprovalRow) => openDecision(row, row.decision)

  function open(row: ApprovalRow): AskedApproval | null {
    const request = requestOf(row)
    // The row's `key` (owner and call) is not sealed, but it determines in whose list the row appears, so it must match
    // the sealed request.
    if (request === null || !isAt(row, request)) return null
    const decision = decisionOf(row)
    const first = openDecision(row, row.firstDecision)
    // If the signature of a decision is invalid, this server did not write the decision, so the stored request cannot
    // be trusted either. The same is true if the row contains a first approval that its request cannot have.
    if (row.decision !== null && decision === null) return null
    if (row.firstDecision !== null && (first?.verdict !== 'approved' || request.persons !== 2)) return null
    return { request, decision, first, state: stateOf(row, { request, decision, first }) }
  }

  function stateOf(
    { id, ending: stored, expiresAt: ends }: ApprovalRow,
    { request, decision, first }: Omit<AskedApproval, 'state'>,
  ): ApprovalState {
    const ending = endedHere.get(id) ?? stored
    if (ending !== null) return ending
    // The store may let the row expire earlier, because of later requests. The approval request is never valid beyond
    // the expiry time that is sealed in it.
    if (Math.min(request.expiresAt, ends) <= now()) return 'expired'
    if (decision === null) return 'pending'
    // Somebody who can write to the store could pass a first approval off as the second one. Also, a server of an
    // earlier release takes one approval for enough.
    const isWhole = request.persons !== 2 || areTwo(request, [first, decision])
    return decision.verdict === 'approved' && !isWhole ? 'void' : decision.verdict
  }

  function partOf({ owner, tool, persons }: ApprovalRequest, person: Identity): ApprovalPart {
    const role = roleOf(person)
    const isAllowed = role !== null && rolesOf.get(tool)?.includes(role) === true
    if (isSame(owner, person)) return method === 'page' && persons !== 2 && isAllowed ? 'asker' : 'watching'
    return role === 'admin' && isAllowed ? 'admin' : 'nobody'
  }

  const mayDecide = (request: ApprovalRequest, person: Identity) => ['asker', 'admin'].includes(partOf(request, person))

  /** Builds the audit entry of an event that is not a tool call. `by` is the person who caused the event. */
  function entryOf(
    event: ApprovalEvent,
    request: ApprovalRequest,
    by: Owner,
    more: Partial<AuditEntry> & Pick<AuditEntry, 'request_id'>,
  ): AuditEntry {
    return {
      ts: new Date(now()).toISOString(),
      phase: 'decision',
      decision: 'allowed',
      tool: request.tool,
      route: ROUTE,
      role: null,
      iss: by.iss,
      sub: by.sub,
      mode,
      transport: 'http',
      params_hash: request.paramsHash,
      approval_id: request.id,
      approval: event,
      ...(!isSame(by, request.owner) && { asked_by: request.owner }),
      ...(request.persons === 2 && { overrides: overridesOf(request) }),
      ...more,
    }
  }

  async function note(event: ApprovalEvent, entry: AuditEntry): Promise<void> {
    await options.audit(entry)
    meter?.approval(event)
  }

  /**
   * Writes the audit entry of an event that can no longer be prevented. Resolves with true if the entry was written,
   * and never rejects.
   */
  async function tryToNote(event: ApprovalEvent, entry: AuditEntry): Promise<boolean> {
    try {
      await note(event, entry)
      return true
    } catch (err) {
      log.error({ err }, 'the audit log cannot be written')
      return false
    }
  }

  function requireAdmin(person: Identity): void {
    if (roleOf(person) !== 'admin') throw new ToolError('forbidden', 'Only an admin revokes what waits for approval.')
  }

  function noteDecided(id: string): void {
    for (const wake of waiting.get(id) ?? []) wake()
  }

  const end = (id: string, ending: ApprovalEnding) =>
    endOnce(endedHere, id, ending, () => attempt(() => rows.end(id, ending)))

  /** Finds the row of an approval request by an id from a URL. The id can be any text. */
  const rowOf = (id: string) => (ID.test(id) ? attempt(() => rows.get(id)) : Promise.resolve(null))

  async function look(id: string): Promise<AskedApproval | null> {
    const row = await rowOf(id)
    return row === null ? null : open(row)
  }

  const approvals = {
    method,
    /** Returns the address of the page on which people decide about this request. */
    urlOf: (id: string) => `${options.publicUrl}${ROUTE}/${id}`,

    /**
     * Finds the latest approval request about the call. Returns null if there is none, or if this server did not write
     * it.
     */
    async find(call: ConfirmedCall): Promise<AskedApproval | null> {
      const row = await attempt(() => rows.find(keyOf(call)))
      const found = row === null ? null : open(row)
      return found !== null && isFor(found.request, call) ? found : null
    },

    /**
     * Opens an approval request about a call, unless one is already open; `isNew` is false in that case. `instead` is
     * the id of an outdated request that the new request replaces.
     */
    async ask(call: ConfirmedCall, question: ApprovalQuestion, instead?: string) {
      const askedAt = now()
      const expiresAt = askedAt + ttlSeconds * 1000
      const request: ApprovalRequest = {
        id: randomBytes(32).toString('base64url'),
        ...call,
        ...question,
        askedAt,
        expiresAt,
      }
      const sealed = requests.seal(JSON.stringify(request), [audience, request.id])
      const row = { id: request.id, key: keyOf(call), request: sealed, expiresAt }
      const opened = await attempt(() => rows.open(row, instead))
      const isOurs = (asked: AskedApproval | null) =>
        asked !== null && isFor(asked.request, call) && LIVE.includes(asked.state)
      const first = open(opened)
      // A row that cannot be opened was written by another program, or sealed with a key that is no longer known. A row
      // that is no longer live was changed in the meantime. In both cases, the new row replaces it.
      const asked = isOurs(first) ? first : open(await attempt(() => rows.open(row, opened.id)))
      if (asked === null || !isOurs(asked)) throw new ToolError('confirm_unavailable', 'The question cannot be kept.')
      const isNew = asked.request.id === request.id
      if (isNew) meter?.approval('asked')
      return { asked, isNew }
    },

    /** Returns true if the time in which the request could be decided and used is over. */
    isOver: ({ request }: AskedApproval): boolean => request.expiresAt <= now(),

    /**
     * Gives up an approval request, so that nobody decides about it any more. Resolves with false if it had ended before.
     */
    async giveUp({ request }: AskedApproval, requestId: string): Promise<boolean> {
      if (!(await end(request.id, 'void'))) return false
      const told = { request_id: requestId, decision: 'denied', reason: 'confirm_required' } as const
      await tryToNote('void', entryOf('void', request, request.owner, told))
      noteDecided(request.id)
      return true
    },

    /**
     * Redeems an approved request (see `redeem` in life.ts). The result is `stale` also if what was approved does not
     * cover the guardrails that the call touches now (`isEnough`), if a person who approved the request may no longer do
     * so, or if such a person's or the asker's access was revoked meanwhile. Rejects with the ToolError of `revokedError`
     * if an admin revoked the request meanwhile.
     */
    async redeem(
      asked: AskedApproval,
      findBinding: () => Promise<string>,
      { signal, requestId, isEnough }: { signal?: AbortSignal; requestId: string; isEnough: boolean },
    ): Promise<Redemption> {
      const { request, decision, first } = asked
      const { id, boundTo, owner, askedAt } = request
      const given = [first, decision].filter((one) => one !== null)
      const isOver = async (person: Owner, at: number) =>
        (await attempt(async () => isRevokedSince?.(person, at))) === true
      let isLapsed = !isEnough || decision === null || given.some(({ by }) => !mayDecide(request, by))
      for (const { person, at } of [{ person: owner, at: askedAt }, ...given.map(({ by, at }) => ({ person: by, at }))])
        isLapsed ||= await isOver(person, at)
      const hasEnded = async (as: ApprovalEnding) =>
        endedHere.get(id) === as || (await attempt(() => rows.get(id)))?.ending === as
      const isUsed = () => hasEnded('used')
      const yes: Yes = {
        boundTo,
        lapsed: isLapsed ? 'stale' : null,
        isUsed,
        async lapse(why) {
          if (await approvals.giveUp(asked, requestId)) return why
          if (await hasEnded('revoked')) throw revokedError(request)
          return (await isUsed()) ? 'replayed' : why
        },
        async claim() {
          const isFirst = await end(id, 'used')
          if (isFirst) meter?.approval('used')
          else if (await hasEnded('revoked')) throw revokedError(request)
          return isFirst
        },
      }
      return redeem(yes, findBinding, signal)
    },
  }

  const desk: ApprovalDesk = {
    method,
    find: look,
    partOf,

    async noteShown(request, person, from) {
      const key = JSON.stringify([request.id, person.iss, person.sub])
      if (shownTo.has(key)) return
      shownTo.set(key, true)
      const entry = entryOf('shown', request, person, { ...originOf(from), role: roleOf(person) })
      if (!(await tryToNote('shown', entry))) shownTo.delete(key)
    },

    async waitingFor(person) {
      const own = ownerKey(person)
      const isAdmin = roleOf(person) === 'admin'
      const most = { inAll: MOST_LISTED, ofEach: isAdmin ? MOST_LISTED_OF_EACH : MOST_LISTED }
      const except: string[] = []
      for (;;) {
        const { total, rows: found } = await attempt(() => rows.waiting(isAdmin ? null : own, { ...most, except }))
        const approvals: AskedApproval[] = []
        const foreign: string[] = []
        for (const row of found) {
          // Other HTTP requests are served between two rows, because rows that this server did not write can be large
          // and take long to open.
          await setImmediate()
          const asked = open(row)
          if (asked === null) foreign.push(row.id)
          else if (partOf(asked.request, person) !== 'nobody') approvals.push(asked)
        }
        if (foreign.length === 0 || except.length >= MOST_PASSED_OVER)
          return { total: total - foreign.length, approvals }
        // Rows that this server did not write are excluded from the next query, so that real requests fill the list
        // instead of them.
        except.push(...foreign)
      }
    },

    async live(person, from) {
      requireAdmin(person)
      const approvals: AskedApproval[] = []
      let next = from
      for (let passed = 0; passed < MOST_PASSED_OVER;) {
        const found = await attempt(() => rows.live(next, MOST_ON_PAGE))
        for (const row of found) {
          if (approvals.length === MOST_ON_PAGE) return { approvals, next }
          // As in `waitingFor`, opening a row can take long.
          await setImmediate()
          next = { expiresAt: row.expiresAt, id: row.id }
          const asked = open(row)
          if (asked !== null && desk.mayRevoke(asked, person)) approvals.push(asked)
          else passed += 1
        }
        if (found.length < MOST_ON_PAGE) return { approvals, next: null }
      }
      return { approvals, next }
    },

    mayRevoke: ({ request, state }, person) =>
      roleOf(person) === 'admin' && REVOCABLE.includes(state) && partOf(request, person) !== 'nobody',

    async revoke(id, by, from) {
      const asked = await look(id)
      if (asked === null || partOf(asked.request, by) === 'nobody') throw unknown()
      requireAdmin(by)
      if (!desk.mayRevoke(asked, by)) return { won: false, approval: asked }
      const { request } = asked
      const told = { ...originOf(from), role: roleOf(by) }
      // As with decisions, the audit entry is written first, so that every revocation has one.
      try {
        await note('revoked', entryOf('revoked', request, by, told))
      } catch (cause) {
        throw new ToolError('audit_unavailable', UNAUDITED, {}, { cause })
      }
      const won = await end(id, 'revoked')
      if (!won) await tryToNote('lost', entryOf('lost', request, by, { ...told, decision: 'denied' }))
      noteDecided(id)
      const approval = await look(id)
      if (approval === null) throw unknown()
      return { won, approval }
    },

    async decide(id, { verdict, by, note: written }, from) {
      for (;;) {
        const row = await rowOf(id)
        const asked = row === null ? null : open(row)
        const part = asked === null ? 'nobody' : partOf(asked.request, by)
        if (row === null || asked === null || part === 'nobody') throw unknown()
        if (part === 'watching') throw notTheirs(method, asked.request, by)
        if (asked.state === 'expired') throw expired()
        const hasApproved = asked.first !== null && isSame(asked.first.by, by)
        if (asked.state !== 'pending' || (verdict === 'approved' && hasApproved)) return { won: false, approval: asked }
        const { name, iss, sub, groups, hasGroupsOverage } = by
        const text = cleanNote(written ?? '') || undefined
        const decision: ApprovalDecision = {
          verdict,
          by: { iss, sub, groups, hasGroupsOverage, name },
          note: text,
          at: now(),
        }
        const isFirst = verdict === 'approved' && asked.request.persons === 2 && asked.first === null
        const event = isFirst ? 'approved_first' : verdict
        const told = { ...originOf(from), role: roleOf(by), note: text }
        const more = {
          ...(verdict === 'denied' && ({ decision: 'denied', reason: 'approval_denied' } as const)),
          ...(event === 'approved' && asked.first !== null && { first_approved_by: ownerOf(asked.first.by) }),
        }
        // The audit entry is written before the decision, so that every decision has one. If somebody else decided
        // first, a second entry says so.
        try {
          await note(event, entryOf(event, asked.request, by, { ...told, ...more }))
        } catch (cause) {
          throw new ToolError('audit_unavailable', UNAUDITED, {}, { cause })
        }
        const sealed = decisions.seal(JSON.stringify(decision), aboutOf(row))
        const after = verdict === 'approved' ? (row.firstDecision ?? undefined) : undefined
        const won = await attempt(() => (isFirst ? rows.approveFirst(id, sealed) : rows.decide(id, sealed, after)))
        const stands = await look(id)
        if (!won) await tryToNote('lost', entryOf('lost', asked.request, by, { ...told, decision: 'denied' }))
        if (stands?.state !== 'pending') noteDecided(id)
        if (stands === null) throw unknown()
        // If two first approvals arrive at the same time, one is stored as the first, and the other one becomes the
        // second.
        if (!won && isFirst && stands.state === 'pending' && stands.first !== null) continue
        if (!won && stands.state === 'expired') throw expired()
        return { won, approval: stands }
      }
    },
  }

  const watch: DecisionWatch = {
    async awaitDecision(id, signal) {
      const woken = new AbortController()
      const wake = () => woken.abort()
      const others = waiting.get(id) ?? new Set()
      waiting.set(id, others.add(wake))
      const over = AbortSignal.any([signal, woken.signal])
      try {
        while (!over.aborted) {
          const found = await look(id).catch(() => undefined)
          // A store that does not respond is no reason to stop waiting, because it may respond at the next attempt.
          if (found === null || (found !== undefined && found.state !== 'pending')) return
          await wait(LOOK_MS, undefined, { signal: over, ref: false }).catch(() => undefined)
        }
      } finally {
        others.delete(wake)
        if (others.size === 0) waiting.delete(id)
      }
    },
  }

  async function sweep(): Promise<void> {
    try {
      for (const row of await rows.expire()) {
        const request = requestOf(row)
        if (request === null || decisionOf(row)?.verdict === 'denied') continue
        const why = { request_id: request.requestId, decision: 'denied', reason: 'approval_expired' } as const
        await tryToNote('expired', entryOf('expired', request, request.owner, why))
        noteDecided(row.id)
      }
    } catch (err) {
      log.error({ err }, 'expired approvals cannot be looked for')
    }
  }

  const timer = setInterval(() => void sweep(), SWEEP_MS).unref()
  return { approvals, desk, watch, sweep, close: () => clearInterval(timer) }
}

/** The states of an approval request that is still valid, whether or not somebody has decided about it. */
const LIVE: readonly ApprovalState[] = ['pending', 'approved', 'denied']

/** The states in which an approval request can still lead to a run of its call, so that it can be revoked. */
const REVOCABLE: readonly ApprovalState[] = ['pending', 'approved']

/**
 * Returns the error for a call whose approval request an admin revoked. The call is refused until the request would
 * have expired, because a client that repeats the call would otherwise ask the same question again at once.
 */
export const revokedError = ({ paramsHash, id, expiresAt }: ApprovalRequest): ToolError =>
  new ToolError('approval_denied', 'An admin has revoked the request to approve this call. Nothing was changed.', {
    reason: 'revoked',
    params_hash: paramsHash,
    approval_id: id,
    denied_until: new Date(expiresAt).toISOString(),
  })

const isSame = (one: Owner, other: Owner) => one.iss === other.iss && one.sub === other.sub

const ownerOf = ({ iss, sub }: Owner): Owner => ({ iss, sub })

/** Returns true if two different people have approved, neither of whom is the caller. */
const areTwo = ({ owner }: ApprovalRequest, [first, second]: readonly [ApprovalDecision | null, ApprovalDecision]) =>
  first !== null && !isSame(first.by, second.by) && !isSame(first.by, owner) && !isSame(second.by, owner)

/**
 * Returns true if an approval request is really about this call. Anyone who can write to the store could have stored
 * another request under the call's key.
 */
const isFor = (request: ApprovalRequest, call: ConfirmedCall) => keyOf(request).call === keyOf(call).call

/** Returns true if the key of a row is the key that follows from its approval request. */
function isAt({ key }: ApprovalRow, request: ApprovalRequest): boolean {
  const { owner, call } = keyOf(request)
  return key.owner === owner && key.call === call
}

/** Puts a note on one line, and removes invisible characters. */
const cleanNote = (text: string): string =>
  [...text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()].slice(0, LONGEST_NOTE).join('').trim()

const originOf = ({ requestId, client, clientAddress }: DecisionOrigin) => ({
  request_id: requestId,
  client,
  client_address: clientAddress,
})

const unknown = () => new ToolError('not_found', 'There is no such approval.')

const expired = () =>
  new ToolError('approval_expired', 'The time to decide about this call is over. It has to be asked again.')

function notTheirs(method: ApprovalDesk['method'], { owner, persons }: ApprovalRequest, by: Identity): ToolError {
  return new ToolError(
    'forbidden',
    isSame(owner, by) && (method === 'two-person' || persons === 2)
      ? `You have asked for this call yourself, so ${persons === 2 ? 'two admins' : 'an admin'} other than you decide${persons === 2 ? '' : 's'} about it.`
      : 'Your role does not let you decide about this call.',
  )
}
