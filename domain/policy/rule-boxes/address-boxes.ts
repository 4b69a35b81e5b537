import type { IpList } from '../../../schemas/pce/ip-list.js'
import { ANY_IP_LIST_NAMES } from '../../../schemas/pce/words.js'
import { LAST, readRange, type Family, type Range } from '../addresses.js'
import type { Box } from '../boxes.js'
import { classifyNumbers } from '../classify-numbers.js'
import { compileName } from '../compile-name.js'
import type { PolicyContents } from '../load-contents.js'
import type { RuleInForce } from '../rule-in-force.js'
import type { Bit } from './bits.js'
import { textOf } from './comparable-text.js'

/**
 * Creates the dimensions of addresses: `ip`, whose values are classes of addresses that are on exactly the same lists;
 * `fqdn` for domain names; and `list` for lists that cannot be read, each of which equals only itself.
 */
export function createAddresses(rules: readonly RuleInForce[], bit: Bit) {
  const lists = new Set<IpList>()
  for (const { rule, contents } of rules) {
    for (const { ip_list: list } of [...rule.providers, ...rule.consumers]) {
      const object = list && contents.listOf(list.href)
      if (object !== undefined) lists.add(object)
    }
  }
  const readable = [...lists].filter(isReadable)
  const index = new Map(readable.map((list, at) => [list, at]))
  const classify = (family: Family) => {
    const of = (excluded: boolean) =>
      readable.map((list) =>
        readRanges(list).flatMap((range) =>
          range !== null && range.family === family && range.exclusion === excluded ? [range] : [],
        ),
      )
    return classifyNumbers({ from: 0n, to: LAST[family] }, [...of(false), ...of(true)])
  }
  const [four, six] = [classify('ipv4'), classify('ipv6')]
  const shift = BigInt(four.sizes.length)
  const all = (1n << BigInt(four.sizes.length + six.sizes.length)) - 1n
  /** Returns the mask of a list, which contains its included ranges without its excluded ones. */
  const maskOf = (list: IpList): bigint => {
    if (isEverything(list)) return all
    const at = index.get(list) as number
    const [own, other] = [four, six].map(({ masks }) => (masks[at] ?? 0n) & ~(masks[readable.length + at] ?? 0n))
    return (own ?? 0n) | ((other ?? 0n) << shift)
  }
  const sizeOf = ({ sizes }: typeof four, mask: bigint) =>
    sizes.reduce((sum, size, at) => (((mask >> BigInt(at)) & 1n) === 1n ? sum + size : sum), 0n)
  const patternsOf = ({ fqdns }: IpList) => (fqdns ?? []).map(({ fqdn }) => fqdn.toLowerCase())
  const patterns = [...new Set([...lists].flatMap(patternsOf))]
  const namesOf = new Map<IpList, bigint>()
  /** A pattern contains every other pattern that it matches: *.example.com contains *.eu.example.com. */
  const readNames = (list: IpList): bigint => {
    let names = 0n
    for (const pattern of patternsOf(list)) {
      const matches = compileName(pattern)
      const contained = pattern.includes('*') ? patterns.filter(matches) : [pattern]
      for (const other of contained) names |= bit('fqdn', other)
    }
    namesOf.set(list, names)
    return names
  }
  return {
    /** The mask with the bits of all addresses. */
    all,
    /** Returns true for more than half of all IPv4 addresses, or more than an eighth of all IPv6 addresses (D92). */
    isMost: (mask: bigint): boolean =>
      2n * sizeOf(four, mask) > LAST.ipv4 || 8n * sizeOf(six, mask >> shift) > LAST.ipv6,
    /**
     * Returns boxes for the ends whose address or domain name is on any of the given lists; the boxes are alternatives.
     */
    boxesOf(named: readonly { href: string }[], contents: PolicyContents): Box[] {
      let mask = 0n
      let names = 0n
      let unread = 0n
      for (const list of named) {
        const object = contents.listOf(list.href)
        if (object === undefined || !isReadable(object)) {
          unread |= bit('list', textOf(list, contents))
          continue
        }
        mask |= maskOf(object)
        names |= namesOf.get(object) ?? readNames(object)
      }
      if (mask === all) return [new Map()]
      return [
        ...(mask === 0n ? [] : [new Map([['ip', mask]])]),
        ...(names === 0n ? [] : [new Map([['fqdn', names]])]),
        ...(unread === 0n ? [] : [new Map([['list', unread]])]),
      ]
    },
  }
}

/** Returns true if every range of a list can be read. */
export const isReadable = (list: IpList): boolean => !readRanges(list).includes(null)

const isEverything = ({ name }: IpList) => name === ANY_IP_LIST_NAMES[0]

const rangesOf = new WeakMap<IpList, readonly (Range | null)[]>()

/** Reads the ranges of a list, once per list; null stands for each range that cannot be read. */
function readRanges(list: IpList): readonly (Range | null)[] {
  const known = rangesOf.get(list) ?? (list.ip_ranges ?? []).map(readRange)
  rangesOf.set(list, known)
  return known
}
