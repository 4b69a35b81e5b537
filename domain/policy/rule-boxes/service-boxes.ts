import type { IngressService } from '../../../schemas/pce/rule-set.js'
import type { Steps } from '../../text/pace-work.js'
import type { Box } from '../boxes.js'
import { type Interval, classifyNumbers } from '../classify-numbers.js'
import type { PolicyContents } from '../load-contents.js'
import type { RuleInForce } from '../rule-in-force.js'
import { type Bit, NONE } from './bits.js'
import { textOf } from './comparable-text.js'
import { type Entry, ICMP, entriesOf, readSpan } from './read-services.js'
import type { WrittenEnd } from './readings.js'

const TCP = 6
const UDP = 17
/** The numbers for all ports of a protocol, or for all combinations of an ICMP type and code. */
const PORTS: Interval = { from: 0n, to: 65_535n }

/** The dimensions of services in a space of rules. */
export interface Services {
  /**
   * Returns boxes for the destination ports and programs that a rule allows or blocks. A connection to which the rule
   * applies is in one of the boxes.
   */
  boxesOf(services: readonly IngressService[], contents: PolicyContents): Box[]
  /**
   * Returns boxes for the source programs to which a rule is limited. A connection to which the rule applies is in one
   * of the boxes. Program names are known only on Windows, so sources without a known program match too.
   */
  clientsOf(services: readonly { href: string }[], contents: PolicyContents): Box[]
}

/**
 * Creates the dimensions of services. The values of `port` are classes: ports of one protocol that are in exactly the
 * same services form one class. `src.process`, `src.service`, `dst.process` and `dst.service` stand for the programs at
 * both ends. The values of `unread` and `client` are services that cannot be read, each equal only to itself.
 */
export function* createServices(rules: readonly RuleInForce[], bit: Bit): Steps<Services> {
  const every = rules.flatMap(({ rule, contents }) =>
    rule.ingress_services.flatMap((service) => readEntries(service, contents) ?? []),
  )
  // An entry with a port but without a protocol covers this port of every protocol that has ports.
  const protocols = new Set([TCP, UDP, ...every.flatMap(({ proto }) => proto ?? [])])
  const classes = new Map<number, { masks: ReadonlyMap<string, bigint>; shift: bigint }>()
  const idOf = ({ ports }: Entry) => (ports === null ? '' : `${ports.from}-${ports.to}`)
  let used = 0
  for (const proto of protocols) {
    const own = new Map<string, Interval>([['', PORTS]])
    for (const entry of every) {
      if (entry.proto === proto || entry.proto === null) own.set(idOf(entry), entry.ports ?? PORTS)
    }
    const { masks, sizes } = yield* classifyNumbers(
      PORTS,
      [...own.values()].map((ports) => [ports]),
    )
    classes.set(proto, {
      masks: new Map([...own.keys()].map((id, at) => [id, masks[at] as bigint])),
      shift: BigInt(used),
    })
    used += sizes.length
  }
  const maskOf = (entry: Entry): bigint => {
    if (entry.proto === null && entry.ports === null) return -1n
    let mask = 0n
    for (const [proto, { masks, shift }] of classes) {
      if ((entry.proto === null && !ICMP.has(proto)) || entry.proto === proto)
        mask |= (masks.get(idOf(entry)) ?? 0n) << shift
    }
    return mask
  }
  const programOf = (end: WrittenEnd, { process, service }: NonNullable<Entry['program']>): Box =>
    new Map([
      [`${end}.process`, process === null ? ~NONE : bit('process', process.toLowerCase())],
      ...(service === null ? [] : [[`${end}.service`, bit('service', service.toLowerCase())] as const]),
    ])
  return {
    boxesOf(services, contents) {
      let open = 0n
      let unread = 0n
      const programs: Box[] = []
      for (const service of services) {
        const entries = readEntries(service, contents)
        if (entries === undefined) unread |= bit('unread', textOf(service, contents))
        for (const { program, ...entry } of entries ?? []) {
          const mask = maskOf(entry)
          if (program === undefined) open |= mask
          else programs.push(new Map([...programOf('dst', program), ['port', mask]]))
        }
      }
      if (open === -1n) return [new Map()]
      return [
        ...(open === 0n ? [] : [new Map([['port', open]])]),
        ...(unread === 0n ? [] : [new Map([['unread', unread]])]),
        ...programs,
      ]
    },
    clientsOf(services, contents) {
      if (services.length === 0) return [new Map()]
      const unnamed: Box = new Map([['src.process', NONE]])
      return [
        unnamed,
        ...services.flatMap((service): Box[] => {
          const entries = readEntries(service, contents)
          if (entries === undefined) return [new Map([['client', bit('client', textOf(service, contents))]])]
          return entries.flatMap(({ program }) => (program === undefined ? [] : [programOf('src', program)]))
        }),
      ]
    },
  }
}

/** Lists the entries of a service in a rule; undefined if the service cannot be read or has no entries. */
function readEntries(service: IngressService, contents: PolicyContents): Entry[] | undefined {
  if (!('href' in service)) {
    const entry = readSpan(service)
    return entry === null ? undefined : [entry]
  }
  const object = contents.serviceOf(service.href)
  const entries = object === undefined ? [] : entriesOf(object)
  return entries.length === 0 ? undefined : entries
}
