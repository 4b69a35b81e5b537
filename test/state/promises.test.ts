/**
 * The ports of schemas/state.ts promise the same whether the state is in a file or in PostgreSQL: one list, which `npm test` runs on a file
 * and `npm test postgres` on PostgreSQL.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'libsql'
import t, { type Test } from 'tap'
import type { Owner } from '../../schemas/caller.js'
import type { ApprovalPlace, ApprovalRow, SealedCredentials, State } from '../../schemas/state.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { openState } from '../../storage/state/open-state.js'
import { found, within } from '../edge/support/within.js'
import { directoryOf } from './support.js'
import { databaseOf } from '../postgres/database-of.js'
import { sharedPostgres } from '../postgres/start-postgres.js'

const NOW = Date.now()
const DAY = 24 * 60 * 60 * 1000

interface Engine {
  /** As another process opens it. */
  open: () => Promise<State>
  /** Lets it forget what expired long ago, as happens by and by. */
  forgetOld: (state: State) => Promise<void>
  /** Changes a table behind the back of every process; the statement has a space where its name begins. */
  alter: (before: string, after: string) => Promise<unknown>
  /** SQL of a text that is longer than any of a server's, and the columns of an approval that can have it. */
  long: { text: string; columns: readonly ('id' | 'owner' | 'call')[] }
}

const ENGINES = {
  async file(t: Test): Promise<Engine> {
    const path = join(directoryOf(t), 'state.db')
    return {
      open: async () => openState(path, { now: () => NOW, variable: 'MCP_STATE_PATH' }),
      forgetOld: async ({ usedTokens }) => void (await usedTokens.claim('another', NOW + DAY)),
      async alter(before, after) {
        const file = new Database(path)
        file.exec(`${before} ${after}`)
        file.close()
      },
      long: { text: 'hex(zeroblob(524289))', columns: ['id', 'owner', 'call'] },
    }
  },
  async PostgreSQL(t: Test): Promise<Engine> {
    const database = await (await sharedPostgres()).makeDatabase()
    // What is done now and then is done when the test says so.
    const tending: (() => void)[] = []
    t.intercept(globalThis, 'setInterval', {
      value: (tend: () => void) => {
        tending.push(tend)
        return { unref() {} }
      },
    })
    return {
      open: () => openDatabase(databaseOf(database.url), { now: () => NOW }),
      async forgetOld() {
        for (const tend of tending) tend()
        const kept = `SELECT 1 FROM svc_mcp.used_tokens WHERE expires_at < ${NOW - DAY}`
        await found(async () => (await database.query(kept)).length === 0, 'old ones are forgotten')
      },
      alter: (before, after) => database.query(`${before} svc_mcp.${after}`),
      // The index of ids has none of this length.
      long: { text: `repeat('0', 1048578)`, columns: ['owner', 'call'] },
    }
  },
}

const PROMISES: Record<string, (t: Test, state: State, other: State, engine: Engine) => Promise<void>> = {
  async 'a record is what was put last, byte by byte, for every process'(t, { credentials }, other) {
    t.equal(await credentials.get(ANN), null)
    t.equal(await credentials.put(ANN, recordOf('one')), true)
    t.same(await other.credentials.get(ANN), recordOf('one'))
    t.equal(await other.credentials.put(ANN, recordOf('two')), true)
    t.same(await credentials.get(ANN), recordOf('two'))
    t.equal((await credentials.get(ANN))!.sealed.constructor, Uint8Array)
    const empty = { version: '', kekId: '', wrappedKey: new Uint8Array(), sealed: new Uint8Array() }
    await credentials.put(ANN, empty)
    t.same(await other.credentials.get(ANN), empty)
    const within = new Uint8Array(new ArrayBuffer(64), 16, 8).fill(7)
    await credentials.put(ANN, { ...empty, wrappedKey: within, sealed: within })
    t.same((await credentials.get(ANN))!.sealed, new Uint8Array(8).fill(7), 'a view is its own bytes alone')
  },

  async 'replaced only while the wrapped key is the one that was seen'(t, { credentials }, other) {
    const { wrappedKey } = recordOf('one')
    t.equal(await credentials.replace(ANN, wrappedKey, recordOf('two')), false, 'there is none')
    t.equal(await credentials.get(ANN), null)
    await credentials.put(ANN, recordOf('one'))
    t.equal(await credentials.replace(BOB, wrappedKey, recordOf('two')), false, 'of another owner')
    t.equal(await credentials.replace(ANN, recordOf('two').wrappedKey, recordOf('three')), false)
    t.same(await credentials.get(ANN), recordOf('one'))
    const tries = [credentials, other.credentials, credentials, other.credentials].map((records, n) =>
      records.replace(ANN, wrappedKey, recordOf(`racer ${n}`)),
    )
    t.equal((await Promise.all(tries)).filter(Boolean).length, 1, 'of several, one')
  },

  async 'removed once, and its owner alone'(t, { credentials }, other) {
    await credentials.put(ANN, recordOf('ann'))
    await credentials.put(BOB, recordOf('bob'))
    await credentials.put({ ...ANN, iss: 'https://other.example' }, recordOf('elsewhere'))
    t.equal(await other.credentials.remove(ANN), true)
    t.equal(await credentials.remove(ANN), false)
    t.equal(await credentials.get(ANN), null)
    t.same(await credentials.get(BOB), recordOf('bob'))
    t.same(await credentials.get({ ...ANN, iss: 'https://other.example' }), recordOf('elsewhere'))
  },

  async 'any text is an id of its own, and pages have all in the order of its bytes'(t, { credentials }, other) {
    const owners = SUBJECTS.flatMap((sub) => ISSUERS.map((iss): Owner => ({ iss, sub })))
    for (const owner of owners) await credentials.put(owner, recordOf(JSON.stringify(owner)))
    for (const owner of owners)
      t.same(await other.credentials.get(owner), recordOf(JSON.stringify(owner)), JSON.stringify(owner).slice(0, 80))
    const sorted = [...owners].sort(
      (one, two) =>
        Buffer.compare(Buffer.from(one.iss), Buffer.from(two.iss)) ||
        Buffer.compare(Buffer.from(one.sub), Buffer.from(two.sub)),
    )
    for (const limit of [1, 7, owners.length, owners.length + 1]) {
      const seen: Owner[] = []
      for (let after: Owner | null | undefined = null; after !== undefined;) {
        const page = await other.credentials.page(after, limit)
        t.ok(page.length <= limit)
        for (const { owner, record } of page) t.same(record, recordOf(JSON.stringify(owner)))
        seen.push(...page.map(({ owner }) => owner))
        after = page.at(-1)?.owner
      }
      t.same(seen, sorted, `${limit} a page`)
    }
    t.same(
      await credentials.page({ iss: ISSUERS[0]!, sub: 'not there' }, 1).then(([one]) => one?.owner.iss),
      ISSUERS[0],
    )
    t.same(await credentials.page({ iss: '~', sub: '' }, 5), [])
  },

  async 'text that cannot be kept as it is is refused, without being told'(t, state) {
    const { credentials, usedTokens, challenges, approvals, notes } = state
    for (const bad of ['canary\0', '\0', 'canary\ud800', '\udc00canary']) {
      const all: Record<string, () => Promise<unknown>> = {
        'get iss': () => credentials.get({ ...ANN, iss: bad }),
        'get sub': () => credentials.get({ ...ANN, sub: bad }),
        put: () => credentials.put({ ...ANN, sub: bad }, recordOf('one')),
        'put with a condition': () =>
          credentials.put({ ...ANN, sub: bad }, recordOf('one'), { notes: [], isMet: () => true }),
        replace: () => credentials.replace({ ...ANN, sub: bad }, new Uint8Array(), recordOf('one')),
        remove: () => credentials.remove({ ...ANN, sub: bad }),
        page: () => credentials.page({ ...ANN, sub: bad }, 1),
        claim: () => usedTokens.claim(bad, NOW + 1000),
        'is used': () => usedTokens.isUsed(bad),
        'put a challenge': () => challenges.put({ owner: OWNER, call: CALL }, bad, NOW + 1000),
        'open an approval': () =>
          approvals.open({ id: 'a', key: { owner: OWNER, call: CALL }, request: bad, expiresAt: NOW + 1000 }),
        'decide about an approval': () => approvals.decide('a', bad),
        'get an approval': () => approvals.get(bad),
        'note name': () => notes.get(bad),
        'set a note': () => notes.set('n', bad),
        'set a note once': () => notes.setOnce('n', bad),
        'remove a note': () => notes.remove(bad),
      }
      for (const [name, work] of Object.entries(all)) {
        const error = await work().then(
          () => null,
          (thrown: Error) => thrown,
        )
        t.equal(error?.constructor, RangeError, `${name} ${JSON.stringify(bad)}`)
        t.notMatch(error?.message, 'canary')
      }
    }
    t.same(await credentials.page(null, 10), [])
    t.equal(await notes.get('n'), null)
  },

  async 'a put on condition sees the notes as they are, and puts nothing otherwise'(t, { credentials, notes }, other) {
    const seen: (readonly (string | null)[])[] = []
    const put = (isMet: boolean) =>
      credentials.put(ANN, recordOf('new'), {
        notes: ['b', 'missing', 'a'],
        isMet: (values) => {
          seen.push(values)
          return isMet
        },
      })
    await credentials.put(ANN, recordOf('old'))
    await notes.set('a', 'A')
    await other.notes.set('b', 'B')
    t.equal(await put(false), false)
    t.same(await other.credentials.get(ANN), recordOf('old'))
    await other.notes.set('b', 'B2')
    t.equal(await put(true), true)
    t.same(await other.credentials.get(ANN), recordOf('new'))
    t.same(seen, [
      ['B', null, 'A'],
      ['B2', null, 'A'],
    ])
    const failing = credentials.put(BOB, recordOf('bob'), {
      notes: ['a'],
      isMet() {
        throw new Error('no')
      },
    })
    await t.rejects(failing, { message: 'no' })
    t.equal(await credentials.get(BOB), null)
    t.equal(await put(true), true, 'and the next one is not in its way')
  },

  async 'once a note is set, no put on the earlier one can come after it'(t, state, other) {
    await state.notes.set('open', 'yes')
    const isOpen = { notes: ['open'], isMet: ([value]: readonly (string | null)[]) => value === 'yes' }
    const putting = Array.from({ length: 40 }, (_, n) =>
      (n % 2 ? state : other).credentials.put({ ...ANN, sub: `racer ${n}` }, recordOf('one'), isOpen),
    )
    await other.notes.set('open', 'no')
    const then = (await state.credentials.page(null, 100)).map(({ owner }) => owner.sub)
    const put = await Promise.all(putting)
    const after = (await state.credentials.page(null, 100)).map(({ owner }) => owner.sub)
    t.same(after, then)
    t.equal(after.length, put.filter(Boolean).length)
  },

  async 'nor after it was removed, or made'(t, state, other) {
    const changes = [
      { first: () => state.notes.set('n', 'there'), met: 'there', change: () => state.notes.remove('n') },
      { first: () => state.notes.remove('n'), met: null, change: () => state.notes.setOnce('n', 'made') },
    ]
    const list = async () => (await state.credentials.page(null, 1000)).map(({ owner }) => owner.sub)
    for (let round = 0; round < 6; round++) {
      const { first, met, change } = changes[round % 2]!
      await first()
      const putting = Array.from({ length: 40 }, (_, n) =>
        (n % 2 ? state : other).credentials.put({ ...ANN, sub: `round ${round}, racer ${n}` }, recordOf('one'), {
          notes: ['n'],
          isMet: ([value]) => value === met,
        }),
      )
      await change()
      const then = await list()
      await Promise.all(putting)
      t.same(await list(), then)
    }
  },

  async 'of 100 claims at once one is the first, in two processes'(t, { usedTokens }, other) {
    t.equal(await usedTokens.isUsed('once'), false)
    const claims = Array.from({ length: 100 }, (_, n) =>
      (n % 2 ? usedTokens : other.usedTokens).claim('once', NOW + 120_000),
    )
    t.equal((await within(Promise.all(claims), 'all claims')).filter(Boolean).length, 1)
    t.equal(await usedTokens.isUsed('once'), true)
    t.equal(await other.usedTokens.isUsed('once'), true)
    t.equal(await other.usedTokens.claim('once', NOW + 999_000), false, 'nor with another end')
    t.equal(await other.usedTokens.claim('Once', NOW + 120_000), true, 'another id')
    await t.rejects(usedTokens.claim('half', NOW + 0.5), RangeError)
    await t.rejects(usedTokens.claim('never', Infinity), RangeError)
    t.equal(await usedTokens.isUsed('half'), false)
  },

  async 'a token that is forgotten stays used'(t, state, other, { forgetOld }) {
    const old = NOW - DAY - 60_000
    // A claim may clear away what is older.
    for (const [n, end] of [old - 5, old, NOW - DAY + 3_600_000].entries())
      t.equal(await state.usedTokens.claim(`token ${n}`, end), true)
    await forgetOld(state)
    const used = await Promise.all([0, 1, 2].map((n) => other.usedTokens.isUsed(`token ${n}`)))
    t.same(used, [false, false, true], 'those that expired a day ago')
    t.equal(await other.usedTokens.claim('token 0', old - 5), false)
    t.equal(await state.usedTokens.claim('token 1', old), false)
    t.equal(await state.usedTokens.claim('unseen', old), false, 'nobody can tell')
    t.equal(await other.usedTokens.claim('later', old + 1), true)
    t.equal(await other.usedTokens.claim('token 2', NOW - DAY + 3_600_000), false)
  },

  async 'a challenge is the last one for its call, until it expires'(t, { challenges }, other) {
    const key = { owner: OWNER, call: CALL }
    t.equal(await challenges.get(key), null)
    await challenges.put(key, 'first', NOW + 1)
    t.equal(await other.challenges.get(key), 'first')
    await other.challenges.put(key, 'second\nΩ', NOW + 2)
    t.equal(await challenges.get(key), 'second\nΩ')
    t.equal(await challenges.get({ owner: OWNER, call: hex('another') }), null)
    t.equal(await challenges.get({ owner: hex('another'), call: CALL }), null)
    await challenges.put(key, 'over', NOW)
    t.equal(await challenges.get(key), null, 'at its end it is over')
  },

  async 'one owner has 100 open, and those that end first go'(t, { challenges }, other) {
    const call = (n: number) => hex(`call ${n}`)
    for (let n = 0; n < 101; n++)
      await challenges.put({ owner: OWNER, call: call(n) }, `${n}`, NOW + 10_000 + (n === 50 ? -5000 : n))
    await other.challenges.put({ owner: hex('another'), call: call(0) }, 'theirs', NOW + 1)
    const open = await Promise.all(
      Array.from({ length: 101 }, (_, n) => other.challenges.get({ owner: OWNER, call: call(n) })),
    )
    t.same(
      open.flatMap((boundTo, n) => (boundTo === null ? [n] : [])),
      [50],
    )
    await challenges.put({ owner: OWNER, call: call(7) }, 'again', NOW + 10_000)
    t.equal(await challenges.get({ owner: OWNER, call: call(8) }), '8', 'one that is put again takes no other place')
    await challenges.put({ owner: OWNER, call: call(7) }, 'over', NOW)
    t.equal(await other.challenges.removeAll(OWNER), 100, 'expired ones as well')
    t.equal(await challenges.removeAll(OWNER), 0)
    t.equal(await challenges.get({ owner: OWNER, call: call(8) }), null)
    t.equal(await challenges.get({ owner: hex('another'), call: call(0) }), 'theirs')
  },

  async 'of several approvals opened at a time for one call one stands, until it ends or another takes its place'(
    t,
    { approvals },
    other,
  ) {
    const key = { owner: OWNER, call: CALL }
    const row = (id: string, end = NOW + 10_000) => ({ id, key, request: `{"of":"${id}"}\n\u0001Ω`, expiresAt: end })
    t.equal(await approvals.find(key), null)
    t.equal(await approvals.get('0'), null)
    const racing = Array.from({ length: 40 }, (_, n) => (n % 2 ? approvals : other.approvals).open(row(`${n}`)))
    const said = await within(Promise.all(racing), 'all are opened')
    t.equal(new Set(said.map(({ id }) => id)).size, 1, 'all are told which')
    const { id } = said[0]!
    const stands = { ...row(id), decision: null, firstDecision: null, ending: null }
    t.same(said[0], stands)
    t.same(await other.approvals.find(key), stands)
    t.same(await approvals.get(id), stands)
    t.equal((await approvals.open(row('another'), 'not this one')).id, id)
    t.equal((await other.approvals.open(row('instead'), id)).id, 'instead')
    t.equal((await approvals.find(key))!.id, 'instead')
    t.equal((await approvals.get(id))!.ending, null, 'the one before is kept')
    t.equal(await other.approvals.end('instead', 'void'), true)
    t.equal((await approvals.open(row('over', NOW))).id, 'over', 'what has ended makes room')
    t.equal((await other.approvals.open(row('last'))).id, 'last', 'and what has expired')
    t.equal((await approvals.open({ ...row('elsewhere'), key: { owner: OWNER, call: hex('other') } })).id, 'elsewhere')
    t.equal(await approvals.removeAll(OWNER), 5)
    t.equal(await other.approvals.find(key), null)
  },

  async 'of 100 decisions at once one is the first, and so of 100 ends'(t, { approvals }, other) {
    const key = { owner: OWNER, call: CALL }
    await approvals.open({ id: 'one', key, request: 'r', expiresAt: NOW + 1 })
    const each = <T>(work: (port: typeof approvals, n: number) => Promise<T>) =>
      within(Promise.all(Array.from({ length: 100 }, (_, n) => work(n % 2 ? approvals : other.approvals, n))), 'all')
    const decided = await each((port, n) => port.decide('one', `decision ${n}`))
    t.equal(decided.filter(Boolean).length, 1)
    const { decision } = (await other.approvals.get('one'))!
    t.equal(decision, `decision ${decided.indexOf(true)}`)
    const ends = await each((port, n) => port.end('one', n % 3 ? 'used' : 'void'))
    t.equal(ends.filter(Boolean).length, 1)
    const winner = ends.indexOf(true)
    t.same(await approvals.get('one'), {
      id: 'one',
      key,
      request: 'r',
      expiresAt: NOW + 1,
      firstDecision: null,
      decision,
      ending: winner % 3 ? 'used' : 'void',
    })
    t.equal(await approvals.decide('one', 'late'), false)
    t.equal(await approvals.decide('none', 'late'), false)
    t.equal(await approvals.end('none', 'used'), false)
    await approvals.open({ id: 'over', key, request: 'r', expiresAt: NOW })
    t.equal(await other.approvals.decide('over', 'late'), false, 'nobody decides at its end')
    await approvals.open({ id: 'ended', key, request: 'r', expiresAt: NOW + 1 })
    await approvals.end('ended', 'void')
    t.equal(await approvals.decide('ended', 'late'), false)
  },

  async 'what is longer than any server writes is read as empty'(t, { approvals }, other, { alter, long }) {
    const row = { id: 'one', key: { owner: OWNER, call: CALL }, request: 'r', expiresAt: NOW + 1000 }
    for (const column of long.columns) {
      await approvals.open(row)
      // Only rows of earlier questions about a call are in no index of owners and calls.
      await alter('UPDATE', `approvals SET ${column} = ${long.text}, is_current = ${column === 'id'}`)
      const { id, key, ...rest } = row
      const read = { id, ...key, [column]: '' }
      const { total, rows } = await other.approvals.waiting(null, { inAll: 10, ofEach: 10 })
      t.same(
        { total, rows: rows.map(({ key: { owner, call }, ...more }) => ({ ...more, owner, call })) },
        { total: 1, rows: [{ ...rest, ...read, firstDecision: null, decision: null, ending: null }] },
        column,
      )
      await alter('DELETE FROM', 'approvals')
    }
  },

  async 'what was used stays used when one row about it is deleted or put back'(
    t,
    { usedTokens, approvals },
    other,
    { alter },
  ) {
    for (const table of ['used_tokens', 'spent']) {
      t.equal(await usedTokens.claim(table, NOW + 1000), true)
      await alter('DELETE FROM', `${table} WHERE id = '${table}'`)
      t.equal(await other.usedTokens.isUsed(table), true)
      t.equal(await other.usedTokens.claim(table, NOW + 1000), false, table)
    }
    await approvals.open({ id: 'one', key: { owner: OWNER, call: CALL }, request: 'r', expiresAt: NOW + 1000 })
    await approvals.decide('one', 'yes')
    t.equal(await approvals.end('one', 'used'), true)
    await alter('UPDATE', 'approvals SET ending = NULL')
    t.equal(await other.approvals.end('one', 'used'), false)
    t.equal((await approvals.get('one'))!.ending, 'used', 'and it has ended again')
    await alter('DELETE FROM', 'spent')
    t.equal(await approvals.end('one', 'used'), false)
  },

  async 'what waits is listed, the newest first, of one owner or of all'(t, { approvals }, other) {
    const open = (owner: string, n: number, end = NOW + 1000 + n) =>
      approvals.open({
        id: `${owner} ${n}`,
        key: { owner: hex(owner), call: hex(`${n}`) },
        request: 'r',
        expiresAt: end,
      })
    for (let n = 0; n < 4; n++) await open('ann', n)
    await open('bob', 10)
    await open('bob', 11, NOW)
    await other.approvals.decide('ann 1', 'd')
    await other.approvals.end('ann 2', 'void')
    const ids = async (owner: string | null, inAll: number, ofEach: number) => {
      const { total, rows } = await other.approvals.waiting(owner, { inAll, ofEach })
      return [total, ...rows.map(({ id }) => id)]
    }
    t.same(await ids(hex('ann'), 10, 10), [2, 'ann 0', 'ann 3'])
    t.same(await ids(null, 10, 10), [3, 'ann 0', 'ann 3', 'bob 10'])
    t.same(await ids(null, 10, 1), [3, 'ann 0', 'bob 10'])
    t.same(await ids(null, 2, 10), [3, 'ann 0', 'bob 10'], 'ann does not push bob off')
    t.same(await ids(hex('nobody'), 10, 10), [0])
  },

  async 'what has not ended is listed page by page, decided or not, what ends first before all others'(
    t,
    { approvals },
    other,
  ) {
    const open = (id: string, end: number) =>
      approvals.open({ id, key: { owner: hex(id), call: CALL }, request: `of ${id}`, expiresAt: end })
    await open('over', NOW)
    for (const id of ['c', 'a', 'B']) await open(id, NOW + 2)
    await open('first', NOW + 1)
    for (const ending of ['used', 'void', 'revoked'] as const) {
      await open(ending, NOW + 3)
      t.equal(await other.approvals.end(ending, ending), true)
      t.equal((await approvals.get(ending))!.ending, ending)
    }
    await other.approvals.decide('a', 'yes')
    const pages: string[][] = []
    for (let after: ApprovalPlace | null = null; ;) {
      const rows: ApprovalRow[] = await other.approvals.live(after, 2)
      pages.push(rows.map(({ id, decision }) => (decision === null ? id : `${id} ${decision}`)))
      if (rows.length < 2) break
      after = rows.at(-1)!
    }
    t.same(pages, [['first', 'B'], ['a yes', 'c'], []])
  },

  async 'one owner has 50 waiting; those that end first expire, and never what is decided'(t, { approvals }, other) {
    const open = (owner: string, n: number) =>
      approvals.open({
        id: `${owner} ${n}`,
        key: { owner: hex(owner), call: hex(`${n}`) },
        request: 'r',
        expiresAt: NOW + 1000 + n,
      })
    await open('ann', 0)
    await other.approvals.decide('ann 0', 'yes')
    for (let n = 1; n <= 52; n++) await open('ann', n)
    await open('bob', 0)
    t.equal((await other.approvals.waiting(hex('ann'), { inAll: 100, ofEach: 100 })).total, 50)
    t.same((await other.approvals.expire()).map(({ id, ending }) => `${id} ${ending}`).sort(), [
      'ann 1 expired',
      'ann 2 expired',
    ])
    t.equal((await other.approvals.waiting(null, { inAll: 100, ofEach: 100 })).total, 51)
  },

  async 'what expires ends once, and is forgotten after a day, or an hour undecided'(t, { approvals }, other) {
    const open = (id: string, end: number) =>
      approvals.open({ id, key: { owner: OWNER, call: hex(id) }, request: 'r', expiresAt: end })
    const HOUR = 3_600_000
    await open('waiting', NOW + 1)
    await open('over', NOW)
    await open('long over', NOW - HOUR)
    await open('decided', NOW + 2)
    await other.approvals.decide('decided', 'yes')
    await open('yesterday', NOW - DAY)
    const found = await within(Promise.all([approvals.expire(), other.approvals.expire()]), 'both have looked')
    t.same(
      found
        .flat()
        .map(({ id, ending }) => `${id} ${ending}`)
        .sort(),
      ['long over expired', 'over expired', 'yesterday expired'],
    )
    t.same(await other.approvals.expire(), [])
    t.equal((await approvals.get('over'))!.ending, 'expired')
    t.equal((await approvals.get('waiting'))!.ending, null)
    t.equal(await approvals.get('long over'), null, 'forgotten')
    t.equal(await approvals.get('yesterday'), null, 'forgotten')
    t.equal((await approvals.get('decided'))!.decision, 'yes')
  },

  async notes(t, { notes }, other) {
    t.equal(await notes.get('n'), null)
    t.equal(await notes.remove('n'), false)
    await notes.set('n', '')
    t.equal(await other.notes.get('n'), '')
    await other.notes.set('n', `'"\\ %s $1 😀`)
    t.equal(await notes.get('n'), `'"\\ %s $1 😀`)
    t.equal(await notes.setOnce('n', 'late'), `'"\\ %s $1 😀`)
    t.equal(await other.notes.remove('n'), true)
    t.equal(await notes.get('n'), null)
    const name = `last_check ${JSON.stringify([ISSUERS[2], '\u0001'.repeat(255)])}`
    await notes.set(name, 'long')
    t.equal(await other.notes.get(name), 'long')
    const said = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 ? notes : other.notes).setOnce('race', `${n}`)),
    )
    t.equal(new Set(said).size, 1, 'all are told what stands there')
    t.equal(await notes.get('race'), said[0])
  },

  async 'it says that it can be written, and changes nothing of anybody'(t, state, other) {
    await state.credentials.put(ANN, recordOf('one'))
    await state.checkWritable()
    await other.checkWritable()
    t.same(await other.credentials.page(null, 5), [{ owner: ANN, record: recordOf('one') }])
  },
}

const ANN: Owner = { iss: 'https://idp.example', sub: 'ann' }
const BOB: Owner = { iss: 'https://idp.example', sub: 'bob' }
const ISSUERS = ['https://idp.example', 'https://IDP.example', `https://idp.example/${'x'.repeat(480)}`]
const SUBJECTS = [
  '',
  ' ',
  'ann',
  'Ann',
  'ann ',
  `o'hara"; DROP TABLE svc_mcp.credentials; --`,
  '$1 %s \\ \u0001 \r\n',
  'é',
  'e\u0301',
  '\u{10ffff}',
  '\uffff',
  '😀'.repeat(255),
  'z'.repeat(255),
]
const hex = (text: string) => createHash('sha256').update(text).digest('hex')
const OWNER = hex('owner')
const CALL = hex('call')

function recordOf(name: string): SealedCredentials {
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
  const own = new Uint8Array(createHash('sha256').update(name).digest())
  return {
    version: `version of ${name}`,
    kekId: hex(name),
    wrappedKey: own,
    sealed: Uint8Array.from([...bytes, ...own]),
  }
}

const engineOf = process.env.SERVICE_STATE === 'postgres' ? ENGINES.PostgreSQL : ENGINES.file

for (const [promise, keep] of Object.entries(PROMISES))
  t.test(promise, async (t) => {
    const engine = await engineOf(t)
    const [one, other] = [await engine.open(), await engine.open()]
    t.teardown(() => Promise.all([one.close(), other.close()]))
    await keep(t, one, other, engine)
  })
