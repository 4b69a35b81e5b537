import { Type, type Static } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import { ENFORCEMENT_MODES } from '../../schemas/pce/workload.js'
import type { Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { changePlain, plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { invalidInput, invalidUri, notAcceptable, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { requireLabel } from '../validate/check-references.js'
import { exact, flag, partial, readJsonList } from '../validate/query-filters.js'
import { CLOSED, Href, Name, Nullable, OneOf, Shape, Text } from '../validate/shape.js'
import { birthStamp, type World } from '../world.js'

const ProfileLabels = Type.Array(
  Type.Union([
    Type.Object({ key: Type.String(), assignment: Href }, CLOSED),
    Type.Object({ key: Type.String(), restriction: Type.Array(Href) }, CLOSED),
  ]),
)
const SETTINGS = {
  labels: Type.Optional(ProfileLabels),
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  managed: Type.Optional(Type.Boolean()),
}
const FIELDS = { ...SETTINGS, assign_labels: Type.Optional(Type.Array(Href)) }
const CREATE = new Shape(
  'container_clusters_container_workload_profiles_post',
  Type.Object({ name: Nullable(Name), description: Type.Optional(Text), ...FIELDS }, CLOSED),
)
const UPDATE = new Shape(
  'container_clusters_container_workload_profiles_put',
  Type.Object({ name: Type.Optional(Nullable(Name)), description: Type.Optional(Nullable(Text)), ...FIELDS }, CLOSED),
)
const UPDATE_SEVERAL = new Shape(
  'container_clusters_container_workload_profiles_update_put',
  Type.Object({ container_workload_profiles: Type.Optional(Type.Array(Href)), ...SETTINGS }, CLOSED),
)

type ProfileLabel = Static<typeof ProfileLabels>[number]

const DEFAULT_NAME = 'Default Profile'
const BORN = {
  name: null,
  namespace: null,
  description: null,
  managed: UNCERTAIN.postedProfileIsManaged,
  linked: false,
  enforcement_mode: 'idle',
  visibility_level: 'flow_summary',
  labels: [] as ProfileLabel[],
  is_default: false,
}

/**
 * The object kind for container workload profiles, which define how the workloads of a namespace are labelled and
 * enforced (P24).
 */
export const containerWorkloadProfile: PlainKind = {
  segment: 'container_workload_profiles',
  noun: 'container_workload_profile',
  route: '/orgs/:org/container_clusters/:cluster/container_workload_profiles',
  ids: 'uuid',
  store: profilesOf,
  filters: {
    name: partial('name'),
    namespace: partial('namespace'),
    enforcement_mode: exact('enforcement_mode'),
    visibility_level: exact('visibility_level'),
    managed: flag('managed'),
    linked: flag('linked'),
    assign_labels: (value) => {
      const wanted = readJsonList(value)
      return (object) => wanted.every((href) => assignedLabels(object).some((assigned) => assigned.href === href))
    },
  },
  requireParent: ({ world, path }) => {
    if (!world.store('container_clusters').get(clusterOf(path))) throw notFound()
  },

  build(world, body) {
    const fields = CREATE.read(body)
    return { ...BORN, ...settle(world, BORN, fields) }
  },

  change: (world, current, body) => settle(world, current, UPDATE.read(body)),

  remove(_world, current) {
    if (current.is_default === true) throw invalidInput('The default profile of a container cluster cannot be deleted')
    return null
  },

  render: renderProfile,
}

export const containerWorkloadProfileRoutes: Route[] = [
  {
    path: `${containerWorkloadProfile.route!}/update`,
    verbs: { PUT: { event: 'container_workload_profile.update', handle: updateSeveral } },
  },
  ...plainRoutes(containerWorkloadProfile),
]

/** Adds a cluster's default profile, for namespaces without a profile of their own. */
export function addDefaultProfile(world: World, cluster: string): void {
  const href = `${cluster}/container_workload_profiles/${world.ids.uuid('container_workload_profiles')}`
  profilesOf(world).set({ href, ...BORN, name: DEFAULT_NAME, is_default: true, ...birthStamp(world) })
}

/** Returns the labels that a profile assigns to each of its workloads. */
export function assignedLabels(profile: PceObject): { href: string }[] {
  return (profile.labels as ProfileLabel[]).flatMap((label) => ('assignment' in label ? [label.assignment] : []))
}

export function renderProfile(world: World, { is_default: _own, ...profile }: PceObject): Json {
  const named = ({ href }: { href: string }) => ({ href, value: world.labels.get(href)?.value })
  const labels = (profile.labels as ProfileLabel[]).map((label) =>
    'assignment' in label
      ? { key: label.key, assignment: named(label.assignment) }
      : { key: label.key, restriction: label.restriction.map(named) },
  )
  return { ...profile, labels, assign_labels: assignedLabels(profile), caps: ['write'] }
}

/** Updates several profiles. If one update is refused, no profile is changed. */
function updateSeveral({ world, path, body }: Call) {
  const { container_workload_profiles: chosen = [], ...settings } = UPDATE_SEVERAL.read(body)
  const cluster = clusterOf(path)
  if (!world.store('container_clusters').get(cluster)) throw notFound()
  const found = chosen.map(({ href }) => {
    const profile = href.startsWith(`${cluster}/`) ? profilesOf(world).get(href) : undefined
    if (!profile) throw invalidUri(href)
    return { profile, fields: settle(world, profile, settings) }
  })
  const changes = found.map(({ profile, fields }) => changePlain(containerWorkloadProfile, world, profile, fields))
  return { status: 204, changes }
}

/**
 * Checks the fields of a write and converts its labels to the current form. `assign_labels` is the older form, with one
 * assignment for each label; `labels` takes precedence.
 */
function settle(
  world: World,
  current: PceObject | typeof BORN,
  { assign_labels, ...fields }: Static<(typeof UPDATE)['schema']>,
): Json {
  const labels = fields.labels
    ? checkLabels(world, fields.labels)
    : assign_labels?.map(({ href }) => ({ key: requireLabel(world, href).key, assignment: { href } }))
  const managed = fields.managed ?? current.managed
  if (managed !== true && (labels ?? (current.labels as unknown[])).length > 0) {
    throw notAcceptable(UNCERTAIN.unmanagedProfileLabels.token, UNCERTAIN.unmanagedProfileLabels.message)
  }
  return { ...fields, ...(labels && { labels }) }
}

/** Checks that each label key has at most one entry, and that all labels in an entry have the key of that entry. */
function checkLabels(world: World, labels: readonly ProfileLabel[]): ProfileLabel[] {
  const keys = new Set(labels.map(({ key }) => key))
  if (keys.size < labels.length) throw notAcceptable(UNCERTAIN.refusedLabelToken, 'Only one entry per label key')
  return labels.map((label) => {
    const check = ({ href }: { href: string }) => {
      if (requireLabel(world, href).key === label.key) return { href }
      throw notAcceptable(UNCERTAIN.refusedLabelToken, `The label ${href} is not one of ${label.key}`)
    }
    return 'assignment' in label
      ? { key: label.key, assignment: check(label.assignment) }
      : { key: label.key, restriction: label.restriction.map(check) }
  })
}

function profilesOf(world: World) {
  return world.store('container_workload_profiles')
}

function clusterOf(path: string): string {
  return path.replace(/\/container_workload_profiles.*$/, '')
}
