import type { VersionedObject } from '../../schemas/pce/reference.js'
import { readRoute, type Call, type Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { containedGroups, expandGroup } from './expand-group.js'
import { bodiesAt, draftHref, inVersion } from './policy-version.js'
import { renderLabels } from './render-labels.js'

const PATH = '/orgs/:org/sec_policy/:pversion/label_groups/:id'

/** The routes that list all labels in a label group, and all label groups that contain it, directly or indirectly. */
export const labelGroupRoutes: Route[] = [
  readRoute(`${PATH}/all_labels`, (call) => {
    const { href, groups } = groupsAround(call)
    const labels = expandGroup(href, (group) => groups.get(group)).map((label) => ({ href: label }))
    return { status: 200, json: renderLabels(call.world, labels) }
  }),
  readRoute(`${PATH}/member_of`, (call) => {
    const { href, groups } = groupsAround(call)
    const parents = [...groups.values()].filter((body) =>
      containedGroups(body.href, (group) => groups.get(group)).has(href),
    )
    const json = parents.map((body) => ({ href: body.href, name: body.name }))
    return { status: 200, json: inVersion(json, call.params.pversion!) }
  }),
]

function groupsAround(call: Call): { href: string; groups: Map<string, VersionedObject> } {
  const bodies = bodiesAt(call.world, 'label_groups', call.params.pversion!).map(({ body }) => body)
  const groups = new Map(bodies.map((body) => [body.href, body]))
  const href = draftHref(call).replace(/\/[^/]+$/, '')
  if (!groups.has(href)) throw notFound()
  return { href, groups }
}
