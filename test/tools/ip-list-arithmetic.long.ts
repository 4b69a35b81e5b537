/**
 * The arithmetic of IP lists against counting: random lists over a few hundred addresses of either family, where each address can be
 * looked at by itself. What get-ip-list-matches says of a list, and edit-ip-list-ranges of an edit, must be what is counted.
 */
import t from 'tap'
import { createRandom } from '../../pce-simulator/estate/random.js'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const LISTS = 60
const QUESTIONS = 120
const EDITS = 120
/** Addresses of the universe, by their number. */
const SIZE = 256

interface Family {
  write: (at: number) => string
  network: (at: number, bits: number) => string
}

const V4: Family = { write: (at) => `192.0.2.${at}`, network: (at, bits) => `192.0.2.${at}/${24 + bits}` }
/** Around a border of 64 bits, where numbers would lose their last digits. */
const V6: Family = {
  write: (at) => `2001:db8:0:ffff:ffff:ffff:ffff:ff${at.toString(16).padStart(2, '0')}`,
  network: (at, bits) => `${V6.write(at)}/${120 + bits}`,
}

/** A range as written, and the addresses it stands for. */
interface Piece {
  text: string
  exclusion: boolean
  from: number
  to: number
}

t.test('matches and edits are what is counted', async (t) => {
  const source = createRandom(7)
  const random = () => source.next()
  const int = (below: number) => source.integer(0, below - 1)
  const piece = ({ write, network }: Family): Piece => {
    const exclusion = random() < 0.35
    const [a, b] = [int(SIZE), int(SIZE)]
    const [from, to] = [Math.min(a, b), Math.max(a, b)]
    if (random() < 0.4) {
      const bits = int(9)
      const width = SIZE >> bits
      const start = a - (a % width)
      return { text: network(a, bits), exclusion, from: start, to: start + width - 1 }
    }
    return random() < 0.3
      ? { text: write(from), exclusion, from, to: from }
      : { text: `${write(from)}-${write(to)}`, exclusion, from, to }
  }
  const pieces = (family: Family, most: number) => Array.from({ length: int(most + 1) }, () => piece(family))
  const has = (list: readonly Piece[], at: number) => {
    const hits = list.filter(({ from, to }) => from <= at && at <= to)
    return hits.some(({ exclusion }) => !exclusion) && !hits.some(({ exclusion }) => exclusion)
  }
  const isIncluded = (list: readonly Piece[], at: number) =>
    list.some(({ exclusion, from, to }) => !exclusion && from <= at && at <= to)
  const toWire = ({ text, exclusion }: Piece) => {
    const [from_ip = '', to_ip] = text.split('-')
    return { from_ip, ...(to_ip !== undefined && { to_ip }), exclusion }
  }

  const bench = await startBench(t, { estate: handMade({}) })
  const lists = Array.from({ length: LISTS }, (_, at) => ({
    name: `L${at}`,
    v4: pieces(V4, 5),
    v6: pieces(V6, 5),
  }))
  for (const { name, v4, v6 } of lists)
    await bench.pce.ipLists.create({ name, ip_ranges: [...v4, ...v6].map(toWire), fqdns: [{ fqdn: 'a.example.com' }] })

  let [whole, part, excluded] = [0, 0, 0]
  for (let round = 0; round < QUESTIONS; round += 1) {
    const isV4 = random() < 0.5
    const family = isV4 ? V4 : V6
    const { from, to, text } = piece(family)
    const { ip_lists: found } = await bench.ok('get-ip-list-matches', { address: text, detail_level: 'full' })
    const byName = new Map<string, Json>(found.map((row: Json) => [row.name, row]))
    const asked = Array.from({ length: to - from + 1 }, (_, at) => from + at)
    const wrong = lists.flatMap(({ name, v4, v6 }) => {
      const own = isV4 ? v4 : v6
      const held = asked.filter((at) => has(own, at)).length
      const isTaken = asked.some((at) => isIncluded(own, at))
      const wanted = held === asked.length ? 'whole' : held > 0 ? 'part' : isTaken ? 'excluded' : undefined
      if (wanted === 'whole') whole += 1
      if (wanted === 'part') part += 1
      if (wanted === 'excluded') excluded += 1
      const row = byName.get(name)
      const counted = wanted === 'part' && row?.held_addresses !== String(held)
      return row?.holds === wanted && !counted
        ? []
        : [`${name}: ${row?.holds} ${row?.held_addresses}, not ${wanted} ${held}`]
    })
    t.same(wrong, [], text)
  }
  t.ok(Math.min(whole, part, excluded) > 100, `${whole} whole, ${part} part, ${excluded} excluded`)

  let moved = 0
  const same = (a: Piece, b: Piece) => a.from === b.from && a.to === b.to && a.exclusion === b.exclusion
  for (let round = 0; round < EDITS; round += 1) {
    const list = lists[int(LISTS)]!
    const [family, key] = random() < 0.5 ? ([V4, 'v4'] as const) : ([V6, 'v6'] as const)
    const before = list[key]
    const gone = before.filter(() => random() < 0.3)
    const added = pieces(family, 3).filter((one) => !gone.some((other) => same(one, other)))
    if (gone.length + added.length === 0) continue
    const answer = await bench.ok('edit-ip-list-ranges', {
      name: list.name,
      add_ranges: added.map(toWire),
      remove_ranges: gone.map(toWire),
    })
    const after = [
      ...before.filter((one) => !gone.some((other) => same(one, other))),
      ...added.filter((one) => !before.some((other) => same(one, other))),
    ]
    list[key] = after
    const all = Array.from({ length: SIZE }, (_, at) => at)
    const gained = all.filter((at) => has(after, at) && !has(before, at)).length
    const lost = all.filter((at) => has(before, at) && !has(after, at)).length
    t.equal(answer.gained?.addresses ?? '0', String(gained), `${list.name} gains`)
    t.equal(answer.lost?.addresses ?? '0', String(lost), `${list.name} loses`)
    moved += gained + lost
  }
  t.ok(moved > 1000, `${moved} addresses moved`)
})
