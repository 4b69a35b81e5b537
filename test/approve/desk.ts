/** The real desk over a state file, with requests that say whatever a test wants. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApprovalQuestion, createApprovals } from '../../plugins/confirm/approvals.js'
import type { ApprovalRequest, ApprovalState, ShownCall } from '../../schemas/approvals.js'
import type { Identity, Owner, Role } from '../../schemas/caller.js'
import type { PersonMethod } from '../../schemas/config.js'
import { openState } from '../../storage/state/open-state.js'
import { tools } from '../../tools/index.js'
import { GROUP_OF, type Line } from '../contract/authenticated-service.js'
import type { Test } from '../setup/pretend-provider.js'

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

interface DeskOptions {
  issuer: string
  method?: PersonMethod
  clock: { offset: number; now: () => number }
  roleOf: (identity: Identity) => Role | null
  audit: Line[]
}

/** What a test wants of a request; the rest is usual. */
export interface Asked extends Partial<ApprovalQuestion> {
  owner?: Owner
  tool?: string
  pce?: string
  /** Milliseconds. */
  ago?: number
  state?: ApprovalState
  /** Who has decided, and what they said. */
  by?: Partial<Identity>
  /** Who has given the first of two approvals. */
  first?: Partial<Identity>
  note?: string
}

const TTL_SECONDS = 900

export function openDesk(t: Test, { issuer, method = 'page', clock, roleOf, audit }: DeskOptions) {
  /** Whether the audit log cannot be written. */
  const faults = { audit: false }
  const folder = mkdtempSync(join(tmpdir(), 'desk-'))
  const file = join(folder, 'state.db')
  const state = openState(file, { now: clock.now, variable: 'MCP_STATE_PATH', warn: () => {} })
  const service = createApprovals({
    config: {
      hmacKey: Buffer.alloc(32, 9),
      ttlSeconds: 120,
      approval: { method, ttlSeconds: TTL_SECONDS, maxAgeSeconds: 0 },
    },
    audience: 'https://mcp.example.test#desk',
    rows: state.approvals,
    roleOf,
    tools,
    audit: async (entry) => {
      if (faults.audit) throw new Error('the disk is full')
      audit.push({ ...entry })
    },
    log: { error: () => {} },
    mode: 'shared',
    publicUrl: 'https://mcp.example.test',
    now: clock.now,
  })
  t.teardown(() => {
    service.close()
    state.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const { approvals, desk } = service
  const from = { requestId: 'request-2' }

  async function put({
    owner,
    tool = 'provision-policy',
    pce,
    state: wanted = 'pending',
    by,
    first,
    note,
    ...rest
  }: Asked) {
    const call = {
      owner: owner ?? { iss: issuer, sub: 'alice' },
      tool,
      pce: pce ?? 'https://pce.example.test:8443 org 1',
      paramsHash: randomBytes(32).toString('hex'),
    }
    const boundTo = 'b'.repeat(64)
    const question = { boundTo, client: 'desktop-client', requestId: 'request-1', shown: SMALL, ...rest }
    const { asked } = await approvals.ask(call, question)
    const { id } = asked.request
    const admin = (who: Partial<Identity> | undefined) => ({
      ...{ iss: issuer, sub: 'adam', groups: [GROUP_OF.admin], hasGroupsOverage: false },
      ...who,
    })
    if (first !== undefined) await desk.decide(id, { verdict: 'approved', by: admin(first) }, from)
    if (wanted === 'pending' || (wanted === 'expired' && by === undefined)) return asked.request
    const verdict = wanted === 'denied' ? 'denied' : 'approved'
    await desk.decide(id, { verdict, by: admin(by), ...(note !== undefined && { note }) }, from)
    const decided = (await desk.find(id))!
    if (wanted === 'used') await approvals.redeem(decided, async () => boundTo, { ...from, isEnough: true })
    if (wanted === 'revoked') await desk.revoke(id, admin(by), from)
    if (wanted === 'void') await approvals.redeem(decided, async () => 'something else', { ...from, isEnough: true })
    return asked.request
  }

  /** Stores a request, with what became of it. */
  async function ask({ ago, ...asked }: Asked = {}): Promise<ApprovalRequest> {
    const before = clock.offset
    clock.offset -= ago ?? (asked.state === 'expired' ? (TTL_SECONDS + 1) * 1000 : 0)
    try {
      return await put(asked)
    } finally {
      clock.offset = before
    }
  }

  const told = (...events: string[]) => audit.filter(({ approval }) => events.includes(String(approval)))
  return {
    desk,
    approvals,
    faults,
    file,
    ask,
    /** Who was shown what. */
    shown: () => told('shown').map(({ sub, approval_id: id }) => `${sub as string} ${id as string}`),
    /** What was decided, by whom, with which note. */
    decided: () => told('approved', 'denied').map(({ approval, sub, note }) => [approval, sub, note]),
  }
}
