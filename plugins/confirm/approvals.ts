import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import {
  type ApprovalDecision,
  type ApprovalDesk,
  type ApprovalEvent,
  type ApprovalPart,
  type ApprovalRequest,
  type Approvals,
  type ApprovalState,
  type AskedApproval,
  type DecisionOrigin,
  type DecisionWatch,
  LONGEST_NOTE,
  type Redemption,
} from '../../schemas/approvals.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Identity, Mode, Owner, Role } from '../../schemas/caller.js'
import type { ApprovalConfig, ConfirmConfig } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { Meter } from '../../schemas/metrics.js'
import type { ApprovalRow, Approvals as ApprovalRows } from '../../schemas/state.js'
import type { AnyTool } from '../../tools/define.js'
import { attempt } from './attempt.js'
import { createSeal, parseSealed } from './seals.js'
import { challengeOwner, keyOf } from './tokens.js'

export interface ApprovalsOptions {
  config: ConfirmConfig & { approval: ApprovalConfig }
  /** As for `createConfirmations`. */
  audience: string
  rows: ApprovalRows
  /** By today's mapping. */
  roleOf: (identity: Identity) => Role | null
  tools: readonly Pick<AnyTool, 'name' | 'roles'>[]
  /** Resolves once the entry is on the disk; rejects where it cannot be written. */
  audit: (entry: AuditEntry) => Promise<void>
  log: { error: (facts: object, message: string) => void }
  mode: Mode
  publicUrl: string
  /** Milliseconds since the epoch. */
  now: () => number
  meter?: Meter
  /** 256 random bits. */
  randomId?: () => string
}

/** Approvals by people: for the gate, for the pages and for whoever waits. */
export interface ApprovalService {
  approvals: Approvals
  desk: ApprovalDesk
  watch: DecisionWatch
  /** Tells the audit log what has expired. Never rejects. */
  sweep(): Promise<void>
  close(): void
}

const ROUTE = '/approve'
const ID = /^[\w-]{43}$/
const MOST_LISTED = 100
/** How often a person's decision is looked for in the store, where another replica may have taken it: milliseconds. */
const LOOK_MS = 2000
const SWEEP_MS = 30_000
/** Whom what was shown is remembered, so that a page that is loaded again is no second entry. */
const MOST_SHOWN_REMEMBERED = 10_000

/** Who decides what, and that each yes is for one run of exactly what was shown (D143, D145). */
export function createApprovals(options: ApprovalsOptions): ApprovalService {
  const { config, audience, rows, roleOf, now, mode, meter, log } = options
  const { randomId = () => randomBytes(32).toString('base64url') } = options
  const { method, ttlSeconds } = config.approval
  const requests = createSeal('request', config)
  const decisions = createSeal('decision', config)
  const aboutRequest = (id: string) => (text: string) => [audience, id, text]
  /** A decision is signed together with the whole request that it is about. */
  const aboutDecision = (sealedRequest: string) => {
    const digest = createHash('sha256').update(sealedRequest).digest('hex')
    return (text: string) => [audience, digest, text]
  }
  const rolesOf = new Map(options.tools.map(({ name, roles }) => [name, roles]))
  const waiting = new Map<string, Set<() => void>>()
  const shownTo = new LRUCache<string, true>({ max: MOST_SHOWN_REMEMBERED })

  const requestOf = ({ id, request }: ApprovalRow) =>
    parseSealed<ApprovalRequest>(requests.open(request, aboutRequest(id)))

  const decisionOf = ({ request, decision }: ApprovalRow) =>
    decision === null ? null : parseSealed<ApprovalDecision>(decisions.open(decision, aboutDecision(request)))

  function open(row: ApprovalRow): AskedApproval | null {
    const request = requestOf(row)
    if (request === null) return null
    const decision = decisionOf(row)
    // A decision that we did not seal is not ours, and neither is then what stands beside it.
    if (row.decision !== null && decision === null) return null
    return { request, decision, state: stateOf(row, request, decision) }
  }

  function stateOf(
    { ending, expiresAt: ends }: ApprovalRow,
    { expiresAt }: ApprovalRequest,
    decision: ApprovalDecision | null,
  ): ApprovalState {
    if (ending !== null) return ending
    // The row may end earlier, pushed out by later questions; never later than was sealed.
    if (Math.min(expiresAt, ends) <= now()) return 'expired'
    return decision === null ? 'pending' : decision.verdict
  }

  function partOf({ owner, tool }: ApprovalRequest, person: Identity): ApprovalPart {
    const role = roleOf(person)
    const isAllowed = role !== null && rolesOf.get(tool)?.includes(role) === true
    const isAsker = owner.iss === person.iss && owner.sub === person.sub
    if (isAsker) return method === 'page' && isAllowed ? 'asker' : 'watching'
    return role === 'admin' && isAllowed ? 'admin' : 'nobody'
  }

  const mayDecide = (request: ApprovalRequest, person: Identity) => ['asker', 'admin'].includes(partOf(request, person))

  /** An entry of its own about an approval, whoever it says has done it. */
  function entryOf(
    event: ApprovalEvent,
    request: ApprovalRequest,
    by: Owner,
    more: Partial<AuditEntry> & Pick<AuditEntry, 'request_id'>,
  ): AuditEntry {
    const isAsker = by.iss === request.owner.iss && by.sub === request.owner.sub
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
      ...(!isAsker && { asked_by: request.owner }),
      ...more,
    }
  }

  async function note(event: ApprovalEvent, entry: AuditEntry): Promise<void> {
    await options.audit(entry)
    meter?.approval(event)
  }

  /** For what happens whether or not it can be written; says whether it was. */
  async function tryToNote(event: ApprovalEvent, entry: AuditEntry): Promise<boolean> {
    try {
      await note(event, entry)
      return true
    } catch (err) {
      log.error({ err }, 'the audit log cannot be written')
      return false
    }
  }

  function noteDecided(id: string): void {
    for (const wake of waiting.get(id) ?? []) wake()
  }

  /** Ids come from addresses: anything. */
  const rowOf = (id: string) => (ID.test(id) ? attempt(() => rows.get(id)) : Promise.resolve(null))

  async function look(id: string): Promise<AskedApproval | null> {
    const row = await rowOf(id)
    return row === null ? null : open(row)
  }

  const approvals: Approvals = {
    method,
    urlOf: (id) => `${options.publicUrl}${ROUTE}/${id}`,

    async find(call) {
      const row = await attempt(() => rows.find(keyOf(call)))
      const found = row === null ? null : open(row)
      return found !== null && isFor(found.request, call) ? found : null
    },

    async ask(call, { boundTo, shown, ownerName, client, requestId }, instead) {
      const askedAt = now()
      const expiresAt = askedAt + ttlSeconds * 1000
      const { owner, tool, paramsHash, pce } = call
      const request: ApprovalRequest = {
        id: randomId(),
        owner,
        ...(ownerName !== undefined && { ownerName }),
        tool,
        paramsHash,
        ...(pce !== undefined && { pce }),
        ...(client !== undefined && { client }),
        requestId,
        boundTo,
        shown,
        askedAt,
        expiresAt,
      }
      const sealed = requests.seal(JSON.stringify(request), aboutRequest(request.id))
      const row = { id: request.id, key: keyOf(call), request: sealed, expiresAt }
      const opened = await attempt(() => rows.open(row, instead))
      const isOurs = (asked: AskedApproval | null) => asked !== null && isFor(asked.request, call)
      const first = open(opened)
      // Where what stands there is not ours, somebody else has written it, or it was sealed with a key that is gone.
      const asked = isOurs(first) ? first : open(await attempt(() => rows.open(row, opened.id)))
      if (asked === null || !isOurs(asked)) throw new ToolError('confirm_unavailable', 'The question cannot be kept.')
      const isNew = asked.request.id === request.id
      if (isNew) meter?.approval('asked')
      return { asked, isNew }
    },

    async redeem(asked, findBinding, { signal, requestId }): Promise<Redemption> {
      const { request, decision } = asked
      const { id } = request
      const isOver = async () => (await attempt(() => rows.get(id)))?.ending ?? null
      const annul = async (): Promise<Redemption> => {
        if (!(await attempt(() => rows.end(id, 'void')))) return (await isOver()) === 'used' ? 'replayed' : 'void'
        await tryToNote(
          'void',
          entryOf('void', request, request.owner, {
            request_id: requestId,
            decision: 'denied',
            reason: 'confirm_required',
          }),
        )
        return 'void'
      }
      if (decision === null || !mayDecide(request, decision.by)) return annul()
      let isSame: boolean
      try {
        isSame = (await findBinding()) === request.boundTo
      } catch (error) {
        // Another call may have run in the meantime, and made what could not be found.
        if ((await isOver()) === 'used') return 'replayed'
        throw error
      }
      if (!isSame) return annul()
      // A client that is gone will not learn the outcome, and must be able to call again.
      signal?.throwIfAborted()
      if (!(await attempt(() => rows.end(id, 'used')))) return 'replayed'
      meter?.approval('used')
      return 'used'
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
      const own = challengeOwner(person)
      const all = roleOf(person) === 'admin' ? null : own
      const { total, rows: found } = await attempt(() => rows.waiting(all, MOST_LISTED))
      const shown = found.flatMap((row) => open(row) ?? [])
      return { total, approvals: shown.filter(({ request }) => partOf(request, person) !== 'nobody') }
    },

    async decide(id, { verdict, by, note: written }, from) {
      const row = await rowOf(id)
      const asked = row === null ? null : open(row)
      const part = asked === null ? 'nobody' : partOf(asked.request, by)
      if (row === null || asked === null || part === 'nobody') throw unknown()
      if (part === 'watching') throw notTheirs(method, asked.request, by)
      if (asked.state === 'expired') throw expired()
      if (asked.state !== 'pending') return { won: false, approval: asked }
      const { name, iss, sub, groups, hasGroupsOverage } = by
      const text = written === undefined ? '' : cleanNote(written)
      const decision: ApprovalDecision = {
        verdict,
        by: { iss, sub, groups, hasGroupsOverage, ...(name !== undefined && { name }) },
        ...(text !== '' && { note: text }),
        at: now(),
      }
      const told = { ...originOf(from), role: roleOf(by), ...(text !== '' && { note: text }) }
      const isDenied = verdict === 'denied' ? ({ decision: 'denied', reason: 'approval_denied' } as const) : {}
      // What is not in the audit log is not given: the entry comes first, and says so again where somebody was faster.
      try {
        await note(verdict, entryOf(verdict, asked.request, by, { ...told, ...isDenied }))
      } catch (cause) {
        throw new ToolError(
          'audit_unavailable',
          'The audit log cannot be written, so nothing was decided.',
          {},
          { cause },
        )
      }
      const sealed = decisions.seal(JSON.stringify(decision), aboutDecision(row.request))
      const won = await attempt(() => rows.decide(id, sealed))
      const stands = await look(id)
      if (!won) await tryToNote('lost', entryOf('lost', asked.request, by, { ...told, decision: 'denied' }))
      noteDecided(id)
      if (stands === null) throw unknown()
      if (!won && stands.state === 'expired') throw expired()
      return { won, approval: stands }
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
          // A store that does not answer may do so later.
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

/** Whether a request that was found by the digest of a call is about that call. */
const isFor = (request: ApprovalRequest, { owner, tool, paramsHash, pce }: Parameters<Approvals['find']>[0]): boolean =>
  request.owner.iss === owner.iss &&
  request.owner.sub === owner.sub &&
  request.tool === tool &&
  request.paramsHash === paramsHash &&
  request.pce === pce

/** On one line, without what cannot be seen. */
const cleanNote = (text: string): string =>
  [...text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()].slice(0, LONGEST_NOTE).join('').trim()

const originOf = ({ requestId, client, clientAddress }: DecisionOrigin) => ({
  request_id: requestId,
  ...(client !== undefined && { client }),
  ...(clientAddress !== undefined && { client_address: clientAddress }),
})

const unknown = () => new ToolError('not_found', 'There is no such approval.')

const expired = () =>
  new ToolError('approval_expired', 'The time to decide about this call is over. It has to be asked again.')

function notTheirs(method: ApprovalDesk['method'], { owner }: ApprovalRequest, by: Identity): ToolError {
  const isAsker = owner.iss === by.iss && owner.sub === by.sub
  return new ToolError(
    'forbidden',
    isAsker && method === 'two-person'
      ? 'You have asked for this call yourself, so an admin other than you decides about it.'
      : 'Your role does not let you decide about this call.',
  )
}
