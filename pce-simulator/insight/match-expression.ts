import { Type, type Static } from '@sinclair/typebox'
import type { Workload } from '../../schemas/pce/workload.js'
import { compileIpList, parseAddress } from '../policy/match-addresses.js'
import { invalidInput } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, OneOf, Port } from '../validate/shape.js'

const PortValue = Type.Object(
  { port: Type.Optional(Port), to_port: Type.Optional(Port), proto: Type.Optional(Type.Integer()) },
  CLOSED,
)
const Leaf = Type.Object(
  {
    property: OneOf('hostname', 'ip_address', 'os', 'process', 'port'),
    operator: OneOf('starts_with', 'ends_with', 'contains', 'equals', 'is_in', 'regex'),
    values: Type.Array(Type.Union([Type.String(), PortValue])),
  },
  CLOSED,
)
export const LabelRuleExpression = Type.Recursive(
  (Expression) =>
    Type.Union([
      Leaf,
      Type.Object({ logical_operator: OneOf('and', 'or', 'not'), child_expressions: Type.Array(Expression) }, CLOSED),
    ]),
  { $id: 'label_mapping_rule_expression' },
)
export type LabelRuleExpression = Static<typeof LabelRuleExpression>
type LeafExpression = Static<typeof Leaf>
type PortRange = Static<typeof PortValue>

export type WorkloadTest = (workload: Workload) => boolean

/** The expression of a label mapping rule (P28) as a test; throws 406 for a value nobody can read. */
export function compileExpression(expression: LabelRuleExpression): WorkloadTest {
  if (!('logical_operator' in expression)) return compileLeaf(expression)
  const tests = expression.child_expressions.map(compileExpression)
  switch (expression.logical_operator) {
    case 'and':
      return (workload) => tests.every((test) => test(workload))
    case 'or':
      return (workload) => tests.some((test) => test(workload))
    case 'not':
      return (workload) => !tests.some((test) => test(workload))
  }
}

/** Any of the workload's values that any of the rule's values fits. */
function compileLeaf({ property, operator, values }: LeafExpression): WorkloadTest {
  if (property === 'port') {
    const ranges = values.map((value) => compilePort(value, operator))
    return (workload) => openPorts(workload).some((open) => ranges.some((fits) => fits(open)))
  }
  const texts = values.map((value) => {
    if (typeof value !== 'string') throw invalidInput(`The values of ${property} are strings`)
    return property === 'ip_address' && isMembership(operator) ? compileAddress(value) : compileText(value, operator)
  })
  return (workload) => TEXTS[property](workload).some((text) => texts.some((fits) => fits(text)))
}

const isMembership = (operator: LeafExpression['operator']) => operator === 'equals' || operator === 'is_in'

const TEXTS: Record<Exclude<LeafExpression['property'], 'port'>, (workload: Workload) => string[]> = {
  hostname: ({ hostname, name }) => present([hostname ?? name]),
  ip_address: ({ interfaces, public_ip }) => present([...(interfaces ?? []).map(({ address }) => address), public_ip]),
  os: ({ os_id, os_detail }) => present([os_id, os_detail]),
  process: (workload) => present(openPorts(workload).map(({ process_name }) => process_name)),
}

function compileText(value: string, operator: LeafExpression['operator']): (text: string) => boolean {
  const fold = (text: string) => (UNCERTAIN.labelMappingFoldsCase ? text.toLowerCase() : text)
  const wanted = fold(value)
  switch (operator) {
    case 'starts_with':
      return (text) => fold(text).startsWith(wanted)
    case 'ends_with':
      return (text) => fold(text).endsWith(wanted)
    case 'contains':
      return (text) => fold(text).includes(wanted)
    case 'equals':
    case 'is_in':
      return (text) => fold(text) === wanted
    case 'regex': {
      const pattern = readPattern(value)
      return (text) => pattern.test(text)
    }
  }
}

function readPattern(value: string): RegExp {
  try {
    return new RegExp(value, UNCERTAIN.labelMappingFoldsCase ? 'i' : '')
  } catch {
    throw invalidInput(`${value} is not a regular expression`)
  }
}

/** An address, a network (`10.0.0.0/8`) or a range (`10.0.0.1-10.0.0.9`). */
function compileAddress(value: string): (text: string) => boolean {
  const [from_ip = '', to_ip] = value.split('-').map((part) => part.trim())
  const ends = [from_ip.split('/')[0]!, ...(to_ip === undefined ? [] : [to_ip])]
  if (ends.some((end) => parseAddress(end) === null)) throw invalidInput(`${value} is not an address, network or range`)
  const range = { from_ip, ...(to_ip === undefined ? {} : { to_ip }) }
  const covers = compileIpList({ href: '', name: '', ip_ranges: [range] })
  return (text) => covers(parseAddress(text), null)
}

interface OpenPort {
  port: number
  protocol: number
  process_name?: string | null
}

/** `{port, to_port, proto}`, or `443` and `8000-8099` as text; other operators look at the number as it is written. */
function compilePort(value: string | PortRange, operator: LeafExpression['operator']): (open: OpenPort) => boolean {
  if (typeof value === 'string' && !isMembership(operator)) {
    const fits = compileText(value, operator)
    return ({ port }) => fits(String(port))
  }
  const { port, to_port = port, proto } = typeof value === 'string' ? readPortRange(value) : value
  if (port === undefined && proto === undefined) throw invalidInput('A port value needs a port or a protocol')
  return (open) =>
    (proto === undefined || open.protocol === proto) &&
    (port === undefined || (port <= open.port && open.port <= to_port!))
}

function readPortRange(text: string): PortRange {
  const [, from, to] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  if (from === undefined) throw invalidInput(`${text} is not a port`)
  return { port: Number(from), ...(to === undefined ? {} : { to_port: Number(to) }) }
}

function openPorts({ services }: Workload): OpenPort[] {
  return services?.open_service_ports ?? []
}

function present(values: readonly (string | null | undefined)[]): string[] {
  return values.filter((value): value is string => typeof value === 'string' && value !== '')
}
