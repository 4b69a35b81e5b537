import ipaddr from 'ipaddr.js'
import { ToolError } from '../../schemas/errors.js'
import type { FqdnReference, IpRangeInput } from '../../schemas/ip-list-shapes.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { isAddress, parseAddress } from '../inventory/parse-addresses.js'
import { quote } from '../text/escape-text.js'

/** Matches a domain name with one or more parts and an optional leading `*` (P17). */
const FQDN = /^(?:\*\.?)?[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*$/
const FQDN_OBJECT = ['fqdn', 'description']
/**
 * Maximum length of a domain name. Longer strings are rejected before the regular expression is applied, which would be
 * slow on them.
 */
const MAX_FQDN = 255

/**
 * Converts ranges to the form that the PCE accepts. Throws invalid_argument with the first invalid range and the reason
 * why it is invalid.
 */
export function planRanges(ranges: readonly IpRangeInput[], argument = 'ip_ranges'): IpRangeInput[] {
  return ranges.map(({ from_ip: from, to_ip: to, description, exclusion = false }, index) => {
    const wrong = explainRange(from.trim(), to?.trim())
    if (wrong !== undefined) {
      const text = `${argument}[${index}]: ${wrong}`
      throw new ToolError('invalid_argument', text, {
        argument: `${argument}[${index}]`,
        from_ip: from,
        to_ip: to ?? null,
      })
    }
    return {
      from_ip: from.trim(),
      ...(to !== undefined && { to_ip: to.trim() }),
      exclusion,
      ...(description !== undefined && { description }),
    }
  })
}

/**
 * Combines the arguments `fqdn` and `fqdns` into one list; undefined if neither was given. `list` is the name of the
 * second argument in messages. Throws invalid_argument for a value that is not a domain name.
 */
export function planFqdns(
  fqdn: string | undefined,
  fqdns: readonly FqdnReference[] | undefined,
  list = 'fqdns',
): { fqdn: string; description?: string }[] | undefined {
  if (fqdn !== undefined && fqdns !== undefined) {
    throw new ToolError('invalid_argument', 'Give fqdn or fqdns, not both.', { argument: 'fqdns' })
  }
  const argument = fqdn === undefined ? list : 'fqdn'
  const given = (fqdns ?? (fqdn === undefined ? undefined : [fqdn]))?.map((entry) => ({ entry, ...readName(entry) }))
  const bad = given?.filter(
    ({ name }) => name === null || name.length > MAX_FQDN || !FQDN.test(name) || isAddress(name),
  )
  if (bad !== undefined && bad.length > 0) {
    const invalid = bad.map(({ entry }) => entry)
    const shown = invalid.map((entry) => quote(typeof entry === 'string' ? entry : JSON.stringify(entry))).join(', ')
    const text = `Not a domain name: ${shown}. Write www.example.com or *.example.com, in ${list} also as {fqdn, description?}.`
    throw new ToolError('invalid_argument', text, { argument, invalid })
  }
  return given?.map(({ name, description }) => ({
    fqdn: name as string,
    ...(description !== undefined && { description }),
  }))
}

/** Checks the form of an entry, because the input schema accepts any object. `name` is null if the form is wrong. */
function readName(entry: FqdnReference): { name: string | null; description?: string } {
  if (typeof entry === 'string') return { name: entry.trim() }
  const { fqdn, description } = entry as Record<string, unknown>
  const known = Object.keys(entry).every((field) => FQDN_OBJECT.includes(field))
  if (!known || typeof fqdn !== 'string') return { name: null }
  if (description === undefined) return { name: fqdn.trim() }
  return typeof description === 'string' ? { name: fqdn.trim(), description } : { name: null }
}

/** Throws invalid_argument if the list would be empty. Fields that the caller leaves out are taken from `current`. */
export function refuseEmptyList(
  ranges: readonly object[] | undefined,
  fqdns: readonly object[] | undefined,
  current?: Pick<IpList, 'ip_ranges' | 'fqdns'>,
): void {
  const entries = (ranges ?? current?.ip_ranges ?? []).length + (fqdns ?? current?.fqdns ?? []).length
  if (entries > 0) return
  throw new ToolError('invalid_argument', 'An IP list needs at least one range or domain name.', {
    argument: 'ip_ranges',
  })
}

function explainRange(from: string, to: string | undefined): string | undefined {
  if (parseAddress(from) === null) return `${quote(from)} is neither an address nor a CIDR.`
  if (to === undefined) return undefined
  if (!isAddress(from)) return `${quote(from)} is already a network; to_ip needs a single address.`
  if (!isAddress(to)) return `to_ip ${quote(to)} is not an address.`
  const [first, last] = [ipaddr.parse(from), ipaddr.parse(to)]
  if (first.kind() !== last.kind()) return `${quote(from)} and ${quote(to)} are of different address families.`
  return isBefore(last.toByteArray(), first.toByteArray())
    ? `to_ip ${quote(to)} is before from_ip ${quote(from)}.`
    : undefined
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((byte, index) => byte !== b[index])
  return at !== -1 && (a[at] ?? 0) < (b[at] ?? 0)
}
