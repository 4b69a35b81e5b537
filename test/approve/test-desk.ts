/** A desk in memory behind the port of the real one, so that a page can be shown whatever a test wants. */
import { randomBytes } from 'node:crypto'
import type {
  ApprovalDecision,
  ApprovalDesk,
  ApprovalRequest,
  ApprovalState,
  AskedApproval,
  ShownCall,
} from '../../schemas/approvals.js'
import type { Identity, Role } from '../../schemas/caller.js'
import type { PersonMethod } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'

export interface TestDesk extends ApprovalDesk {
  /** Puts a request there, and answers it. */
  ask(
    request?: Partial<ApprovalRequest>,
    more?: { state?: ApprovalState; decision?: ApprovalDecision },
  ): ApprovalRequest
  /** Who was shown what: sub and id. */
  shown: string[]
  decided: { verdict: string; by: Identity; note?: string }[]
  /** What the next call of the desk rejects with. */
  fault: ToolError | null
  roleOf: (identity: Identity) => Role | null
  method: PersonMethod
}

export const SMALL: ShownCall = {
  summary: 'Makes a pending change active, so that VENs enforce it: 1 IP list updated.',
  effect: 'widening',
  warnings: ['The IP list “Partners” lets in 256 more addresses.'],
  objects: [
    {
      kind: 'IP list',
      name: 'Partners',
      href: '/orgs/1/sec_policy/draft/ip_lists/7',
      change: 'update',
      effect: 'widening',
      updated_at: '2026-11-25T09:12:00.000Z',
      updated_by: 'bob@example.com',
      fields: [
        {
          path: 'ip_ranges',
          before: [{ from_ip: '10.0.0.0/24' }, { from_ip: '10.0.9.1' }],
          after: [{ from_ip: '10.0.0.0/24' }, { from_ip: '10.0.1.0/24' }],
        },
        { path: 'description', before: 'Partners in the data centre', after: 'Partners' },
      ],
    },
  ],
  objects_total: 1,
  workloads_affected: 12,
  draft: { first_edit: '2026-11-25T09:12:00.000Z', last_edit: '2026-11-25T09:12:00.000Z', by: ['bob@example.com'] },
}

export function openTestDesk(issuer: string, now: () => number): TestDesk {
  const kept = new Map<string, AskedApproval>()
  const isOpen = ({ request, state }: AskedApproval) => state === 'pending' && request.expiresAt > now()
  const current = (one: AskedApproval): AskedApproval =>
    one.state === 'pending' && !isOpen(one) ? { ...one, state: 'expired' } : one
  const check = () => {
    const { fault } = desk
    desk.fault = null
    if (fault !== null) throw fault
  }
  const desk: TestDesk = {
    method: 'page',
    roleOf: () => 'admin',
    shown: [],
    decided: [],
    fault: null,
    ask(request = {}, { state = 'pending', decision } = {}) {
      const whole: ApprovalRequest = {
        id: randomBytes(32).toString('base64url'),
        owner: { iss: issuer, sub: 'alice' },
        tool: 'provision-policy',
        paramsHash: 'a'.repeat(64),
        pce: 'https://pce.example.test:8443 org 1',
        client: 'claude-desktop',
        requestId: 'request-1',
        boundTo: 'b'.repeat(64),
        shown: SMALL,
        askedAt: now(),
        expiresAt: now() + 900_000,
        ...request,
      }
      kept.set(whole.id, { request: whole, state, decision: decision ?? null })
      return whole
    },
    async find(id) {
      check()
      const one = kept.get(id)
      return one === undefined ? null : current(one)
    },
    async noteShown({ id }, { sub }) {
      check()
      desk.shown.push(`${sub} ${id}`)
    },
    async waitingFor(person) {
      check()
      const all = [...kept.values()].filter((one) => isOpen(one) && desk.partOf(one.request, person) !== 'nobody')
      return { total: all.length, approvals: all.reverse().slice(0, 100) }
    },
    partOf({ owner }, person) {
      const isAsker = owner.iss === person.iss && owner.sub === person.sub
      const role = desk.roleOf(person)
      if (isAsker) return desk.method === 'page' && role === 'admin' ? 'asker' : 'watching'
      return role === 'admin' ? 'admin' : 'nobody'
    },
    async decide(id, { verdict, by, note }) {
      check()
      const one = kept.get(id)
      if (one === undefined || desk.partOf(one.request, by) === 'nobody')
        throw new ToolError('not_found', 'There is no such request.')
      if (desk.partOf(one.request, by) === 'watching') throw new ToolError('forbidden', 'Somebody else decides this.')
      if (one.state !== 'pending') return { won: false, approval: one }
      if (!isOpen(one)) throw new ToolError('approval_expired', 'Nobody decided in time.')
      desk.decided.push({ verdict, by, ...(note !== undefined && { note }) })
      const decision = { verdict, by, at: now(), ...(note !== undefined && { note }) }
      const approval = { ...one, state: verdict, decision }
      kept.set(id, approval)
      return { won: true, approval }
    },
  }
  return desk
}
