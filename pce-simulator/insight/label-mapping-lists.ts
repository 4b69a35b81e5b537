import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Action, Route } from '../http/route.js'
import { changePlain, removePlain } from '../kinds/plain-kind.js'
import { invalidUri, notFound } from '../refusal.js'
import { CLOSED, Href, Shape } from '../validate/shape.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { RULE_CHANGES, checkRule, labelMappingRule, labelMappingRules } from './label-mapping-rule.js'

const REORDER = new Shape(
  'label_mapping_rules_reorder_put',
  Type.Object({ position: Type.Integer({ minimum: 0 }) }, CLOSED),
)
const DELETE = new Shape(
  'label_mapping_rules_delete_put',
  Type.Object({ rules: Type.Array(Href, { minItems: 1, maxItems: 1000 }) }, CLOSED),
)
const UPDATE = new Shape(
  'label_mapping_rules_update_put',
  Type.Array(Type.Object({ href: Type.String(), ...RULE_CHANGES }, CLOSED)),
)

const PATH = '/orgs/:org/label_mapping_rules'
const put = (path: string, event: string, handle: Action['handle']): Route => ({
  path: `${PATH}${path}`,
  verbs: { PUT: { event, handle } },
})

/** What is done to the list of rules as a whole: several at once, all or nothing, and their order (P12, P13). */
export const labelMappingListRoutes: Route[] = [
  put('/:id/reorder', 'label_mapping_rule.reorder', ({ world, path, body }) => {
    const href = path.replace(/\/reorder$/, '')
    const { position } = REORDER.read(body)
    const moved = world.store('label_mapping_rules').get(href)
    if (!moved) throw notFound()
    const others = labelMappingRules(world).filter((rule) => rule.href !== href)
    rewrite(world, others.toSpliced(position, 0, moved as (typeof others)[number]))
    return { status: 204, changes: [{ resource: { label_mapping_rule: { href } }, type: 'update' }] }
  }),
  put('/update', 'label_mapping_rules.update', ({ world, body }) => {
    const items = UPDATE.read(body).map(({ href, ...fields }) => {
      checkRule(world, fields)
      return { current: requireRule(world, href), fields }
    })
    const changes = items.map(({ current, fields }) => changePlain(labelMappingRule, world, current, fields))
    const status = UNCERTAIN.mappingRulesUpdateStatus
    const json = items.map(({ current }) => ({ href: current.href, status: 'updated' }))
    return { status, ...(status === 200 ? { json } : {}), changes }
  }),
  put('/delete', 'label_mapping_rules.delete', ({ world, body }) => {
    const rules = new Set(DELETE.read(body).rules.map(({ href }) => requireRule(world, href)))
    return { status: 204, changes: [...rules].map((rule) => removePlain(labelMappingRule, world, rule)) }
  }),
]

export function requireRule(world: World, href: string): PceObject {
  const rule = world.store('label_mapping_rules').get(href)
  if (!rule) throw invalidUri(href)
  return rule
}

/** A store lists its objects in the order in which they came. */
function rewrite(world: World, rules: readonly PceObject[]): void {
  const store = world.store('label_mapping_rules')
  for (const { href } of rules) store.remove(href)
  for (const rule of rules) store.set(rule)
}
