import type { IpList } from '../../../schemas/pce/ip-list.js'
import { ANY_IP_LIST_NAMES } from '../../../schemas/pce/words.js'
import { LAST, readRange, type Family, type Range } from '../addresses.js'
import type { Box } from '../boxes.js'
import { classifyNumbers } from '../classify-numbers.js'
import type { PolicyContents } from '../load-contents.js'
import type { RuleInForce } from '../rule-in-force.js'
import type { Bit } from './bits.js'
import { textOf } from './comparable-text.js'

const rangesOf = new WeakMap<IpList, readonly (Range | null)[]>()

/** The ranges of a list, read once; null for each that cannot be read. */
function readRanges(list: IpList): readonly (Range | null)[] {
  const known = rangesOf.get(list) ?? (list.ip_ranges ?? []).map(readRange)
  rangesOf.set(list, known)
  return known
}

export const isReadable = (list: IpList) => !readRanges(list).includes(null)
const isEverything = ({ name }: IpList) => name === ANY_IP_LIST_NAMES[0]

export function createAddresses(rules: readonly RuleInForce[]) {
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
  /** A list is its included ranges without its excluded ones. */
  const maskOf = (list: IpList): bigint => {
    if (isEverything(list)) return all
    const at = index.get(list) as number
    const [own, other] = [four, six].map(({ masks }) => (masks[at] ?? 0n) & ~(masks[readable.length + at] ?? 0n))
    return (own ?? 0n) | ((other ?? 0n) << shift)
  }
  const sizeOf = ({ sizes }: typeof four, mask: bigint) =>
    sizes.reduce((sum, size, at) => (((mask >> BigInt(at)) & 1n) === 1n ? sum + size : sum), 0n)
  const patterns = [...new Set([...lists].flatMap(({ fqdns }) => (fqdns ?? []).map(({ fqdn }) => fqdn.toLowerCase())))]
  return {
    all,
    /** Whether a mask holds half of all IPv4 addresses, or as many IPv6 addresses as are routed on the internet. */
    isMost: (mask: bigint): boolean =>
      2n * sizeOf(four, mask) > LAST.ipv4 || 8n * sizeOf(six, mask >> shift) > LAST.ipv6,
    /** The ends whose address or name is on any of these lists. */
    boxesOf(named: readonly { href: string }[], contents: PolicyContents, bit: Bit): Box[] {
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
        for (const { fqdn } of object.fqdns ?? []) {
          const matches = compileName(fqdn)
          // A name that a pattern matches is one of those that the pattern stands for.
          for (const other of patterns) if (matches(other)) names |= bit('fqdn', other)
        }
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

/** `*` stands for any run of characters, itself among them. */
function compileName(pattern: string): (name: string) => boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/gu, '\\$&'))
  const expression = new RegExp(`^${parts.join('.*')}$`, 'iu')
  return (name) => expression.test(name)
}
