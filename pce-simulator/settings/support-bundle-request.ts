import { gzipSync } from 'node:zlib'
import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import { readRoute, type Call, type Route } from '../http/route.js'
import type { Json } from '../model.js'
import { createPlain, plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { invalidInput, notFound } from '../refusal.js'
import { advance, hasResult, isPending, startProgress, type Progress } from '../status/progress.js'
import { UNCERTAIN } from '../uncertain.js'
import { readTime } from '../validate/query-filters.js'
import { CLOSED, Nullable, Shape } from '../validate/shape.js'
import type { World } from '../world.js'

const Time = Type.Optional(Nullable(Type.String()))
const CREATE = new Shape(
  'support_bundle_requests_post',
  Type.Object({ include_logs: Type.Optional(Type.Boolean()), starting_at: Time, ending_at: Time }, CLOSED),
)

/** Asked for, made in the background, fetched; never changed (P12). */
const supportBundleRequest: PlainKind = {
  segment: 'support_bundle_requests',
  noun: 'support_bundle_request',
  ids: 'uuid',
  store: (world) => world.store('support_bundle_requests'),
  filters: {},

  build(world, body) {
    const { include_logs = true, starting_at = null, ending_at = null } = CREATE.read(body)
    for (const time of [starting_at, ending_at]) {
      if (time !== null && readTime(time) === null) throw invalidInput(`${time} is not a timestamp with a time zone`)
    }
    const name = `support-bundle-${world.now().replace(/\D/g, '').slice(0, 14)}`
    const asked = { name, include_logs, starting_at, ending_at }
    return { ...asked, requested_at: world.now(), completed_at: null }
  },

  remove: () => null,

  render(_world, { progress, updated_at: _never, updated_by: _nobody, ...fields }) {
    const made = (progress ?? startProgress({})) as Progress
    const download_url = hasResult(made) ? { href: `${fields.href}/download` } : null
    return { ...fields, status: UNCERTAIN.supportBundleStatus[made.stage], download_url }
  },
}

const [collection, item] = plainRoutes(supportBundleRequest)

export const supportBundleRoutes: Route[] = [
  { ...collection!, verbs: { ...collection!.verbs, POST: { event: 'support_bundle_request.create', handle: create } } },
  { ...item!, verbs: { ...item!.verbs, GET: { handle: poll } } },
  readRoute('/orgs/:org/support_bundle_requests/:id/download', ({ world, path }) => {
    const request = world.store('support_bundle_requests').get(path.replace(/\/download$/, ''))
    if (!request || !hasResult(request.progress as Progress)) throw notFound()
    return { status: 200, file: { type: 'application/gzip', content: gzipSync(`${request.name as string}\n`) } }
  }),
]

/** How far it is, is nothing that events tell. */
function create(call: Call) {
  const { world, path, body } = call
  const made = createPlain(supportBundleRequest, supportBundleRequest.build!(world, body, call), world, { path })
  const object = find(world, made.json.href as string)
  world.store('support_bundle_requests').set({ ...object, progress: startProgress(call) })
  return made
}

/** Each read of one moves it on, as with all asynchronous work here; a list does not. */
function poll({ world, path, query }: Call) {
  const current = find(world, path)
  const progress = advance(current.progress as Progress, world.options.pollsUntilDone)
  const completed_at = isPending(progress) ? null : (current.completed_at ?? world.now())
  const next: PceObject = { ...current, progress, completed_at }
  world.store('support_bundle_requests').set(next)
  return { status: 200, json: supportBundleRequest.render(world, next, query) as Json }
}

function find(world: World, href: string): PceObject {
  const found = world.store('support_bundle_requests').get(href)
  if (!found) throw notFound()
  return found
}
