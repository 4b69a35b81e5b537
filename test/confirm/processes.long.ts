/** Confirm tokens over several processes, over processes that are killed, and over any order of events. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import fc from 'fast-check'
import { createTokens, type Tokens } from '../../plugins/confirm/tokens.js'
import { openState } from '../../storage/state/open-state.js'
import type { State } from '../../schemas/state.js'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'
import { NOW } from '../tools/harness.js'
import { CHILD_CALL, childConfig, SHOWN } from './child-call.js'
import { startConfirming } from './harness.js'

const PROCESSES = 4
const TOKENS = Number(process.env.CONFIRM_TOKENS ?? 100)
const KILLS = Number(process.env.CONFIRM_KILLS ?? 3)
const MODEL_RUNS = Number(process.env.CONFIRM_MODEL_RUNS ?? 30)

interface Place {
  state: string
  effects: string
}

function place(t: Test): Place {
  const directory = mkdtempSync(join(tmpdir(), 'confirm-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const files = { state: join(directory, 'state.db'), effects: join(directory, 'effects') }
  writeFileSync(files.effects, '')
  return files
}

/** Opens the file as one process does. */
function open(path: string, now: () => number): { state: State; confirmations: Tokens } {
  const state = openState(path, { now, variable: 'MCP_STATE_PATH' })
  const { usedTokens, challenges } = state
  return { state, confirmations: createTokens({ ...childConfig, usedTokens, challenges, now }) }
}

async function mintMany(path: string, count: number): Promise<string[]> {
  const { state, confirmations } = open(path, () => NOW)
  await confirmations.ask(CHILD_CALL, SHOWN)
  const minted = await Promise.all(Array.from({ length: count }, () => confirmations.mint(CHILD_CALL)))
  state.close()
  return minted.map(({ token }) => token)
}

/** A process that redeems; `outcomes` grows while it runs. */
async function startChild(t: Test, { state, effects }: Place) {
  const outcomes = new Map<number, string>()
  const child: ChildProcess = spawn(
    process.execPath,
    [compiled('test/confirm/redeem-child.ts'), state, effects, String(NOW)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const ended = new Promise((resolve) => child.once('exit', resolve))
  t.teardown(() => child.kill('SIGKILL') && ended)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  await lines.next()
  return {
    outcomes,
    /** Hands it all tokens at once. */
    send(tokens: readonly string[]) {
      child.stdin!.on('error', () => {})
      child.stdin!.end(tokens.map((token, n) => `${JSON.stringify({ n, token })}\n`).join(''))
    },
    /** Reads answers until there are so many, or the process has ended. */
    async read(most = Infinity) {
      while (outcomes.size < most) {
        const { done, value } = await lines.next()
        if (done === true) break
        const { n, outcome } = JSON.parse(value) as { n: number; outcome: string }
        outcomes.set(n, outcome)
      }
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const effectsOf = ({ effects }: Place) => readFileSync(effects, 'utf8').split('\n').filter(Boolean)

t.test(`with ${PROCESSES} processes and the same tokens, each token runs once in one of them`, async (t) => {
  const files = place(t)
  const tokens = await mintMany(files.state, TOKENS)
  const children = await Promise.all(Array.from({ length: PROCESSES }, () => startChild(t, files)))
  // Each begins elsewhere, so that none can be through before the others have begun.
  const startOf = (index: number) => Math.floor((index * TOKENS) / PROCESSES)
  for (const [index, child] of children.entries())
    child.send([...tokens.slice(startOf(index)), ...tokens.slice(0, startOf(index))])
  await Promise.all(children.map((child) => child.read()))
  for (const [n] of tokens.entries()) {
    const outcomes = children
      .map((child, index) => child.outcomes.get((n - startOf(index) + TOKENS) % TOKENS))
      .toSorted()
    if (outcomes.join() !== 'replayed,replayed,replayed,spent') t.fail(`token ${n}: ${outcomes.join()}`)
  }
  const effects = effectsOf(files)
  t.equal(effects.length, TOKENS)
  t.equal(new Set(effects).size, TOKENS)
  const winners = children.filter(({ outcomes }) => [...outcomes.values()].includes('spent')).length
  t.ok(winners > 1, `they did race: ${winners} processes won some`)
})

t.test('killed at any moment, nothing runs twice and used tokens stay used', async (t) => {
  const files = place(t)
  const tokens = await mintMany(files.state, TOKENS)
  for (let round = 0; round < KILLS; round++) {
    const child = await startChild(t, files)
    child.send(tokens)
    await child.read(Math.ceil(((round + 1) * TOKENS) / (KILLS + 1)))
    await child.kill()
  }
  const last = await startChild(t, files)
  last.send(tokens)
  await last.read()
  t.equal(last.outcomes.size, TOKENS)
  t.ok([...last.outcomes.values()].every((outcome) => outcome === 'spent' || outcome === 'replayed'))
  const effects = effectsOf(files)
  t.equal(new Set(effects).size, effects.length, 'no token ran twice')
  t.ok(
    effects.length >= TOKENS - KILLS,
    `of each killed process at most one claimed token is lost: ${effects.length} ran`,
  )
})

t.test('killed between claim and first write, the token is used and nothing is written', async (t) => {
  const bench = await startConfirming(t)
  await bench.draft('Interrupted')
  const asked = await bench.call('provision-policy', {})
  const { confirm_token: token } = await bench.mint('provision-policy', asked.params_hash)
  const before = bench.simulator.state.policyVersion
  // What it asks last before it writes.
  bench.simulator.faults.add({ kind: 'hang', path: '/orgs/1/sec_policy/impact', times: 1 })
  bench.simulator.clearRequests()
  const { url, orgId, credentials } = bench.simulator
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', 'test/confirm/serve-child.ts', bench.directory, String(bench.clock.now), token],
    { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, PCE: JSON.stringify({ url, orgId, credentials }) } },
  )
  const ended = new Promise((resolve) => child.once('exit', resolve))
  while (!bench.simulator.requests.some(({ path }) => path.endsWith('/impact'))) {
    if (child.exitCode !== null) return t.fail('the process ended by itself')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  child.kill('SIGKILL')
  await ended
  t.notOk(bench.simulator.requests.some(({ method, path }) => method === 'POST' && path.endsWith('/sec_policy')))

  const restarted = await startConfirming(t, { after: bench })
  partial(t, await restarted.call('provision-policy', {}, { token }), { error: 'confirm_token_replay' })
  t.equal(bench.simulator.state.policyVersion, before)
  const again = await restarted.mint('provision-policy', asked.params_hash)
  partial(t, await restarted.call('provision-policy', {}, { token: again.confirm_token }), {
    ok: true,
    version: before + 1,
  })
})

t.test('a forgotten used token stays used when the clock is set back', async (t) => {
  const clock = { now: NOW }
  const where = place(t).state
  const { state, confirmations } = open(where, () => clock.now)
  t.teardown(() => state.close())
  const spend = async (token: string, by = confirmations) => {
    const reading = by.read(token, CHILD_CALL)
    if (reading.state !== 'signed') throw new Error(reading.state)
    return by.spend(reading.token, () => Promise.resolve(SHOWN))
  }
  const mint = async () => {
    await confirmations.ask(CHILD_CALL, SHOWN)
    return (await confirmations.mint(CHILD_CALL)).token
  }
  const token = await mint()
  t.equal(await spend(token), 'spent')
  clock.now += 24 * 60 * 60 * 1000
  t.equal(await spend(token), 'replayed')
  clock.now += 24 * 60 * 60 * 1000
  t.equal(await spend(await mint()), 'spent', 'clears the old one away')
  // This process remembers it; another one has the file alone.
  const other = open(where, () => clock.now)
  t.teardown(() => other.state.close())
  t.equal(await spend(token, other.confirmations), 'expired')
  clock.now = NOW + 60_000
  t.equal(await spend(token, other.confirmations), 'replayed')
})

/** What a token is in the model. */
interface ModelToken {
  token: string
  owner: string
  set: string | null
  expiresAt: number
  isUsed: boolean
}

class Real {
  readonly clock = { now: NOW }
  service: ReturnType<typeof open>
  constructor(private readonly path: string) {
    this.service = open(path, () => this.clock.now)
  }
  restart() {
    this.service.state.close()
    this.service = open(this.path, () => this.clock.now)
  }
}

interface Model {
  now: number
  /** That the clock has ever shown. */
  latest: number
  /** What is pending now. */
  set: string
  tokens: ModelToken[]
  asked: Map<string, { set: string; expiresAt: number; challenge: string }>
}

const OWNERS = ['ann', 'bob'] as const
const callOf = (sub: string) => ({ ...CHILD_CALL, owner: { iss: 'https://id.example.test', sub } })
const TTL = 120_000

type Command = fc.AsyncCommand<Model, Real>
const command = (name: string, run: Command['run']): Command => ({ check: () => true, run, toString: () => name })

const COMMANDS: fc.Arbitrary<Command>[] = [
  fc.constantFrom(...OWNERS).map((owner) =>
    command(`${owner} is asked`, async (model, { service, clock }) => {
      const { expiresAt, challenge } = await service.confirmations.ask(callOf(owner), model.set)
      if (expiresAt !== clock.now + TTL) throw new Error('another lifetime')
      model.asked.set(owner, { set: model.set, expiresAt, challenge: challenge! })
    }),
  ),
  fc.constantFrom(...OWNERS).map((owner) =>
    command(`${owner} has a token minted`, async (model, { service }) => {
      const asked = model.asked.get(owner)
      const minted = await service.confirmations.mint(callOf(owner), asked?.challenge).catch((error: unknown) => {
        // Of a question that has expired nobody knows any more.
        if (asked === undefined || asked.expiresAt > model.latest) throw error
        return null
      })
      if (minted === null) return
      const { token, expiresIn } = minted
      if (expiresIn !== 120) throw new Error('another lifetime')
      const set =
        (JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { set?: string }).set ?? null
      // A question that has expired may be forgotten even if the clock goes back then: nobody is bound to more than they were shown.
      const isOpen = asked !== undefined && asked.expiresAt > model.latest
      if (set !== asked?.set && (isOpen || set !== null)) throw new Error(`bound to ${set}`)
      if (asked !== undefined && asked.expiresAt <= model.now && set !== null) throw new Error('bound too late')
      const expiresAt = Math.floor(model.now / 1000) * 1000 + TTL
      model.tokens.push({ token, owner, set, expiresAt, isUsed: false })
    }),
  ),
  fc.tuple(fc.nat(), fc.constantFrom(...OWNERS)).map(([which, owner]) =>
    command(`${owner} redeems token ${which}`, async (model, { service }) => {
      const known = model.tokens[which % Math.max(1, model.tokens.length)]
      if (known === undefined) return
      const reading = service.confirmations.read(known.token, callOf(owner))
      if (known.owner !== owner) return same(reading.state, 'mismatch')
      if (reading.state !== 'signed') throw new Error(reading.state)
      const outcome = await service.confirmations.spend(reading.token, async () => model.set)
      const isStale = known.set !== model.set
      const expected = known.isUsed
        ? 'replayed'
        : known.expiresAt <= model.now
          ? 'expired'
          : isStale
            ? 'stale'
            : 'spent'
      same(outcome, expected)
      known.isUsed ||= outcome === 'spent'
    }),
  ),
  fc.constantFrom('one', 'two').map((set) =>
    command(`${set} is pending`, async (model) => {
      model.set = set
    }),
  ),
  fc.constantFrom(1, 999, 60_000, 119_000, 120_000, -60_000).map((ms) =>
    command(`${ms} ms pass`, async (model, real) => {
      real.clock.now = model.now += ms
      model.latest = Math.max(model.latest, model.now)
    }),
  ),
  fc.constant(
    command('a restart', async (_model, real) => {
      real.restart()
    }),
  ),
]

t.test('any order of asking, minting, redeeming, waiting and restarting', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'confirm-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  let opened = 0
  await fc.assert(
    fc.asyncProperty(fc.commands(COMMANDS, { maxCommands: 40, size: 'max' }), async (commands) => {
      const real = new Real(join(directory, `${opened++}.db`))
      const model: Model = { now: NOW, latest: NOW, set: 'one', tokens: [], asked: new Map() }
      try {
        await fc.asyncModelRun(() => ({ model, real }), commands)
      } finally {
        real.service.state.close()
      }
    }),
    { numRuns: MODEL_RUNS },
  )
  t.equal(opened >= MODEL_RUNS, true)
})

function same(actual: string, expected: string): void {
  if (actual !== expected) throw new Error(`${actual} instead of ${expected}`)
}
