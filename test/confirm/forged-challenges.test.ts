/** Whoever can only write to the state can have nothing confirmed that its caller was not shown (D141). */
import t from 'tap'
import type { ConfirmConfig } from '../../schemas/config.js'
import type { ConfirmedCall } from '../../schemas/confirmations.js'
import type { ChallengeKey, Challenges } from '../../schemas/state.js'
import { confirmationsOf, memoryState } from './memory-state.js'

const NOW = Date.parse('2026-06-15T12:00:00Z')
const OLD = Buffer.alloc(32, 5)
const KEY = Buffer.alloc(32, 7)
const ANN: ConfirmedCall = {
  owner: { iss: 'https://id', sub: 'ann' },
  tool: 'provision-policy',
  paramsHash: 'a'.repeat(64),
  pce: 'https://pce org 1',
}
const OTHERS: Record<string, ConfirmedCall> = {
  'another caller': { ...ANN, owner: { ...ANN.owner, sub: 'bob' } },
  'another issuer': { ...ANN, owner: { ...ANN.owner, iss: 'https://other' } },
  'another tool': { ...ANN, tool: 'delete-label' },
  'other arguments': { ...ANN, paramsHash: 'b'.repeat(64) },
  'another PCE': { ...ANN, pce: 'https://pce org 2' },
}

interface Row {
  boundTo: string
  expiresAt: number
}

/** One table of challenges that anybody may write to, and servers over it. */
function makeTable() {
  const clock = { now: NOW }
  const rows = new Map<string, Row>()
  const nameOf = ({ owner, call }: ChallengeKey) => `${owner}:${call}`
  const { usedTokens } = memoryState(() => clock.now)
  let lastRow = ''
  const challenges: Challenges = {
    async put(key, boundTo, expiresAt) {
      rows.set((lastRow = nameOf(key)), { boundTo, expiresAt })
    },
    async get(key) {
      const found = rows.get((lastRow = nameOf(key)))
      return found !== undefined && found.expiresAt > clock.now ? found.boundTo : null
    },
    removeAll: () => Promise.reject(new Error('nobody asks')),
  }
  const serve = (config: Partial<ConfirmConfig> = {}, audience?: string) =>
    confirmationsOf({ usedTokens, challenges }, clock, config, audience)
  type Server = ReturnType<typeof serve>
  return {
    clock,
    rows,
    serve,
    /** The name of the row of a call. */
    async rowOf(call: ConfirmedCall): Promise<string> {
      await serve().mint(call)
      return lastRow
    },
    /** What becomes of a call that is confirmed without having been asked, when `set` is what it would do. */
    runs: async (server: Server, call: ConfirmedCall, set: string): Promise<string> => {
      const read = server.read((await server.mint(call)).token, call)
      return read.state === 'signed' ? server.spend(read.token, async () => set) : read.state
    },
  }
}

t.test('a row that no server wrote confirms nothing', async (t) => {
  const keys: Record<string, Partial<ConfirmConfig>> = {
    'under the current key': { hmacKey: KEY },
    'under the previous one': { hmacKey: KEY, previousHmacKey: OLD },
  }
  for (const [name, config] of Object.entries(keys))
    await t.test(name, async (t) => {
      const table = makeTable()
      const { rows, clock, runs } = table
      const asking = table.serve({ hmacKey: config.previousHmacKey ?? KEY })
      const server = table.serve(config)
      const row = await table.rowOf(ANN)
      const end = NOW + 120_000
      const asked = await asking.ask(ANN, 'shown')
      const sealed = rows.get(row)!
      t.equal(await runs(server, ANN, 'shown'), 'spent', 'what was shown runs')

      const [code, expiry, boundTo] = sealed.boundTo.split('.') as [string, string, string]
      t.same([expiry, boundTo], [`${end}`, 'shown'])
      const forged: Record<string, string> = {
        'no code': 'evil',
        'nothing but the end': `${end}.evil`,
        'zeros for a code': `${'0'.repeat(64)}.${end}.evil`,
        'the code of what was shown': `${code}.${end}.evil`,
        'a code cut short': `${code.slice(2)}.${end}.evil`,
        'a longer end': `${code}.${end}0.evil`,
        'the end moved into the set': `${code}.${end}.${boundTo}.evil`,
        empty: '',
      }
      for (const [what, text] of Object.entries(forged)) {
        rows.set(row, { boundTo: text, expiresAt: end })
        for (const set of ['evil', 'shown', `${boundTo}.evil`]) t.equal(await runs(server, ANN, set), 'stale', what)
        await t.rejects(server.mint(ANN, asked.challenge), { code: 'confirm_required' }, what)
      }

      for (const later of [end + 1, end * 10]) {
        rows.set(row, { boundTo: `${code}.${later}.shown`, expiresAt: later })
        t.equal(await runs(server, ANN, 'shown'), 'stale', 'a later end has no code')
      }
      rows.set(row, { ...sealed, expiresAt: end + 3_600_000 })
      t.equal(await runs(server, ANN, 'shown'), 'spent')
      clock.now = end - 1
      t.equal(await runs(server, ANN, 'shown'), 'spent')
      clock.now = end
      t.equal(await runs(server, ANN, 'shown'), 'stale', 'it ends when it would have, whatever its row says')
      await t.rejects(server.mint(ANN, asked.challenge), { code: 'confirm_required' })

      await asking.ask(ANN, 'shown later')
      rows.set(row, { ...sealed, expiresAt: end + 3_600_000 })
      t.equal(await runs(server, ANN, 'shown'), 'stale', 'an old row is put back')
    })
})

t.test('a row is of its call, its server and its state', async (t) => {
  const table = makeTable()
  const server = table.serve({ hmacKey: KEY })
  const row = await table.rowOf(ANN)
  for (const [what, other] of Object.entries(OTHERS)) {
    await server.ask(other, 'theirs')
    t.equal(await table.runs(server, other, 'theirs'), 'spent')
    table.rows.set(row, table.rows.get(await table.rowOf(other))!)
    t.equal(await table.runs(server, ANN, 'theirs'), 'stale', what)
  }
  await table.serve({ hmacKey: KEY }, 'https://another.example').ask(ANN, 'elsewhere')
  t.equal(await table.runs(server, ANN, 'elsewhere'), 'stale', 'another server, or another state')
  await table.serve({ hmacKey: OLD }).ask(ANN, 'before')
  t.equal(await table.runs(server, ANN, 'before'), 'stale', 'a key that is gone')
  await server.ask(ANN, 'at last')
  t.equal(await table.runs(server, ANN, 'at last'), 'spent')
})
