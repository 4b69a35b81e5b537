import { Type, type Static } from '@sinclair/typebox'

import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Answer, Call } from '../http/route.js'
import type { Json } from '../model.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, Href, Nullable, OneOf, Port, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { compileActorSearch, type SearchedActor } from './search-actors.js'
import { RULE_TYPES, describePlaced, listRules, type PlacedRule } from './describe-rules.js'

const SELECTORS = {
  actors: Type.Optional(Type.String()),
  label: Type.Optional(Href),
  label_group: Type.Optional(Href),
  workload: Type.Optional(Href),
  container_workload: Type.Optional(Href),
  kubernetes_workload: Type.Optional(Href),
  virtual_service: Type.Optional(Href),
  ip_list: Type.Optional(Href),
}
const Actors = Type.Array(Type.Object(SELECTORS, CLOSED), { minItems: 1 })
const Providers = Type.Array(Type.Object({ ...SELECTORS, virtual_server: Type.Optional(Href) }, CLOSED), {
  minItems: 1,
})
const Span = Type.Object(
  {
    service_name: Type.Optional(Nullable(Type.String())),
    process_name: Type.Optional(Nullable(Type.String())),
    port: Type.Optional(Port),
    to_port: Type.Optional(Port),
    proto: Type.Optional(Nullable(Type.Integer())),
    icmp_type: Type.Optional(Type.Integer()),
    icmp_code: Type.Optional(Type.Integer()),
  },
  CLOSED,
)
const Count = Type.Object({ matched: Type.Optional(Type.Integer()), total: Type.Optional(Type.Integer()) })
const FLAGS = {
  enabled: Type.Optional(Type.Boolean()),
  unscoped_consumers: Type.Optional(Type.Boolean()),
  sec_connect: Type.Optional(Type.Boolean()),
  machine_auth: Type.Optional(Type.Boolean()),
  stateless: Type.Optional(Type.Boolean()),
}
const Criteria = Type.Object(
  {
    ...FLAGS,
    description: Type.Optional(Text),
    ingress_services: Type.Optional(
      Type.Array(Type.Union([Type.Object({ href: Type.String() }), Span]), { minItems: 1 }),
    ),
    providers: Type.Optional(Providers),
    consumers: Type.Optional(Actors),
    consuming_security_principals: Type.Optional(Type.Array(Href)),
    update_type: Type.Optional(OneOf('create', 'update', 'delete')),
    resolve_actors: Type.Optional(Type.Boolean()),
    rule_types: Type.Optional(Type.Array(OneOf(...RULE_TYPES))),
    counts: Type.Optional(
      Type.Object(Object.fromEntries(RULE_TYPES.map((type) => [type, Type.Optional(Count)])), CLOSED),
    ),
  },
  CLOSED,
)
const SEARCH = new Shape('sec_policy_rule_search_post', Criteria)
type Criteria = Static<typeof Criteria>

/** Finds the rules that meet every criterion, grouped by their type, each together with its rule set (P27). */
export function searchRules({ world, params, body }: Call): Answer {
  const criteria = SEARCH.read(body)
  const pversion = params.pversion!
  const rules = listRules(world, pversion)
  const meets = compileCriteria(world, criteria)
  const found: Json = {}
  const counts: Json = {}
  for (const type of criteria.rule_types ?? RULE_TYPES) {
    const ofType = rules.filter((placed) => placed.type === type)
    const matching = ofType.filter(meets)
    found[type] = matching.map((placed) => describePlaced(world, placed, pversion))
    counts[type] = { matched: matching.length, total: ofType.length }
  }
  return { status: 200, json: criteria.counts ? { ...found, counts } : found }
}

function compileCriteria(world: World, criteria: Criteria): (placed: PlacedRule) => boolean {
  const { description, update_type, ingress_services, consuming_security_principals: principals } = criteria
  const tests: ((placed: PlacedRule) => boolean)[] = []
  for (const flag of Object.keys(FLAGS) as (keyof typeof FLAGS)[]) {
    const wanted = criteria[flag]
    if (wanted !== undefined) tests.push(({ rule }) => (rule[flag] === true) === wanted)
  }
  if (description !== undefined) {
    const wanted = description.toLowerCase()
    tests.push(({ rule }) => ((rule.description ?? '') as string).toLowerCase().includes(wanted))
  }
  if (update_type !== undefined) tests.push(({ rule }) => rule.update_type === update_type)
  for (const { href } of principals ?? []) {
    tests.push(({ rule }) =>
      ((rule.consuming_security_principals ?? []) as { href: string }[]).some((one) => one.href === href),
    )
  }
  for (const wanted of ingress_services ?? []) tests.push(({ rule }) => offers(world, rule, wanted))
  for (const side of ['providers', 'consumers'] as const) {
    const actors = (criteria[side] ?? []) as SearchedActor[]
    const each = actors.map((actor) => compileActorSearch(world, side, actor, criteria.resolve_actors === true))
    if (each.length === 0) continue
    const every = UNCERTAIN.ruleSearchActors === 'all'
    tests.push((placed) => (every ? each.every((test) => test(placed)) : each.some((test) => test(placed))))
  }
  return (placed) => tests.every((test) => test(placed))
}

type Wanted = Partial<Static<typeof Span>> & { href?: string }

/**
 * Returns true if a rule refers to the searched service by its href, or covers the searched port, either directly or
 * through a service object.
 */
function offers(world: World, rule: Json, wanted: Wanted): boolean {
  const entries = (rule.ingress_services ?? []) as IngressService[]
  if (wanted.href !== undefined) {
    const href = wanted.href.replace(/\/sec_policy\/[^/]+\//, '/sec_policy/draft/')
    return entries.some((entry) => 'href' in entry && entry.href === href)
  }
  const spans = entries.flatMap((entry): Partial<Static<typeof Span>>[] => {
    if (!('href' in entry)) return [entry]
    const service = world.policy.get('services', entry.href)?.draft as Service | undefined
    return [...(service?.service_ports ?? []), ...(service?.windows_services ?? [])] as Partial<Static<typeof Span>>[]
  })
  return spans.some((span) => covers(span, wanted))
}

function covers(span: Partial<Static<typeof Span>>, wanted: Wanted): boolean {
  const { port, to_port, href: _none, ...exact } = wanted
  for (const [field, value] of Object.entries(exact)) {
    if (value != null && span[field as keyof typeof exact] !== value) return false
  }
  if (port === undefined) return true
  return span.port != null && span.port <= port && (to_port ?? port) <= (span.to_port ?? span.port)
}
