import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { answerCollection } from '../kinds/answer-collection.js'
import { Refusal, invalidInput, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import type { Filters } from '../validate/query-filters.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { VEN_TYPES, defaultTypes, findRelease, releasesOf } from './ven-release.js'

const SET_DEFAULT = new Shape('software_ven_releases_default_put', Type.Object({ release: Type.String() }, CLOSED))
const SET_DEFAULTS = new Shape(
  'software_ven_releases_defaults_put',
  Type.Object(
    { release: Type.String(), [UNCERTAIN.venReleaseDefaultsTypes]: Type.Array(OneOf(...VEN_TYPES), { minItems: 1 }) },
    CLOSED,
  ),
)

const FILTERS: Filters = {
  ven_type: (value) => (release) => value === 'all' || (release.ven_types as string[]).includes(value),
}

/** The routes of VEN releases: the releases that VENs can be upgraded to, and the default for new VENs (P57). */
export const venReleaseRoutes: Route[] = [
  {
    path: '/orgs/:org/software/ven/releases',
    verbs: {
      GET: {
        handle: (call) =>
          answerCollection(call, { objects: releasesOf(call.world).all(), filters: FILTERS, render: renderRelease }),
      },
    },
  },
  {
    path: '/orgs/:org/software/ven/releases/default',
    verbs: {
      PUT: {
        event: 'software_ven_release.update',
        handle: ({ world, body }) => {
          const { release } = SET_DEFAULT.read(body)
          return { status: 204, changes: setDefault(world, release, VEN_TYPES) }
        },
      },
    },
  },
  {
    path: '/orgs/:org/software/ven/releases/defaults',
    verbs: {
      PUT: {
        event: 'software_ven_release.update',
        handle: ({ world, body }) => {
          const { release, [UNCERTAIN.venReleaseDefaultsTypes]: types } = SET_DEFAULTS.read(body)
          return { status: 204, changes: setDefault(world, release, types) }
        },
      },
    },
  },
  {
    path: '/orgs/:org/software/ven/releases/:release',
    verbs: {
      GET: { handle: (call) => ({ status: 200, json: renderRelease(requireRelease(call)) }) },
      DELETE: {
        event: 'software_ven_release.delete',
        handle: (call) => {
          const release = requireRelease(call)
          if (defaultTypes(release).length > 0) {
            throw new Refusal(UNCERTAIN.defaultReleaseDeletionStatus, invalidInput('The default release stays').errors)
          }
          releasesOf(call.world).remove(release.href)
          return { status: 204, changes: [{ resource: nameRelease(release), type: 'delete' }] }
        },
      },
    },
  },
  {
    path: '/orgs/:org/software/ven/releases/:release/images',
    verbs: { GET: { handle: (call) => ({ status: 200, json: requireRelease(call).images }) } },
  },
]

/** Sets the default release of the given VEN types. Each type has exactly one default release. */
function setDefault(world: World, wanted: string, types: readonly string[]): Change[] {
  if (!findRelease(world, wanted)) throw invalidInput(`There is no VEN release ${wanted}`)
  return releasesOf(world)
    .all()
    .flatMap((release): Change[] => {
      const before = defaultTypes(release)
      const kept = before.filter((type) => !types.includes(type))
      const after = release.release === wanted ? VEN_TYPES.filter((type) => [...kept, ...types].includes(type)) : kept
      if (after.length === before.length && after.every((type) => before.includes(type))) return []
      releasesOf(world).set({ ...release, default_release_ven_types: after })
      return [
        { resource: nameRelease(release), type: 'update', changes: { default_release_ven_types: { before, after } } },
      ]
    })
}

function requireRelease({ world, params }: Call): PceObject {
  const release = findRelease(world, params.release!)
  if (!release) throw notFound()
  return release
}

function renderRelease({ href, release, ...rest }: PceObject): Json {
  return { href, release, default: (rest.default_release_ven_types as string[]).length > 0, ...rest }
}

function nameRelease({ href, release }: PceObject): Json {
  return { software_ven_release: { href, name: release } }
}
