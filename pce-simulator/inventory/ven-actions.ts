import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Answer, Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import { invalidInput, type PceErrorItem } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, Href, OneOf, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { compareReleases } from './compare-releases.js'
import { Refused, unpair } from './unpair.js'
import { findRelease, hasImageFor } from './ven-release.js'
import { changeVen, findPaired, requireVenHrefs, versionOf } from './ven.js'

const vens = (maxItems: number) => Type.Array(Href, { minItems: 1, maxItems })

const UNPAIR = new Shape(
  'vens_unpair_put',
  Type.Object({ vens: vens(1000), firewall_restore: Type.Optional(OneOf('saved', 'default', 'disable')) }, CLOSED),
)
const UPGRADE = new Shape(
  'vens_upgrade_put',
  Type.Object(
    {
      release: Type.String(),
      vens: vens(25_000),
      upgrade_timeout_seconds: Type.Optional(Type.Integer({ minimum: 900, maximum: 15_552_000 })),
    },
    CLOSED,
  ),
)
const REMOTE_ACTION = new Shape(
  'vens_remote_action_put',
  Type.Object({ action: OneOf('restart'), vens: vens(1) }, CLOSED),
)
const RECOVERY = new Shape(
  'vens_authentication_recovery_put',
  Type.Object(
    {
      vens: vens(1000),
      recovery_enabled: Type.Boolean(),
      recovery_duration_seconds: Type.Integer({ minimum: 3600, maximum: 2_592_000 }),
    },
    CLOSED,
  ),
)

/**
 * The routes of actions on several VENs at once. `errors` in the answer lists the VENs for which the action was refused
 * (P13, P32).
 */
export const venActionRoutes: Route[] = [
  action('unpair', ({ world, body }) => {
    const { errors, changes } = unpair(world, requireVenHrefs(world, UNPAIR.read(body).vens), (href) =>
      findPaired(world, href),
    )
    return { status: UNCERTAIN.venActionStatus, json: { errors }, changes }
  }),

  action('upgrade', ({ world, body }) => {
    const { release: wanted, upgrade_timeout_seconds: seconds, ...sent } = UPGRADE.read(body)
    const release = findRelease(world, wanted)
    if (!release) throw invalidInput(`There is no VEN release ${wanted}`)
    const expiresAt = world.clock() + (seconds ?? UNCERTAIN.venUpgradeTimeoutSeconds) * 1000
    return each(
      world,
      requireVenHrefs(world, sent.vens),
      (workload) => whyNotUpgrade(workload, release),
      (workload) => changeVen(world, workload, { upgrade: { release: wanted, expiresAt } }),
    )
  }),

  action('remote_action', ({ world, body }) =>
    each(
      world,
      requireVenHrefs(world, REMOTE_ACTION.read(body).vens),
      () => undefined,
      (workload) => changeVen(world, workload, {}),
    ),
  ),

  action('authentication_recovery', ({ world, body }) => {
    const { vens: sent, recovery_enabled, recovery_duration_seconds } = RECOVERY.read(body)
    const recoveryUntil = recovery_enabled ? world.clock() + recovery_duration_seconds * 1000 : 0
    return each(
      world,
      requireVenHrefs(world, sent),
      () => undefined,
      (workload) => changeVen(world, workload, { recoveryUntil }),
    )
  }),
]

function action(name: string, handle: (call: Call) => Answer): Route {
  return { path: `/orgs/:org/vens/${name}`, verbs: { PUT: { event: `vens.${name}`, handle } } }
}

function each(
  world: World,
  hrefs: readonly string[],
  whyNot: (workload: PceObject) => PceErrorItem | undefined,
  apply: (workload: PceObject) => Change,
): Answer {
  const refused = new Refused()
  const changes: Change[] = []
  for (const href of hrefs) {
    const workload = findPaired(world, href)
    const reason = workload ? whyNot(workload) : UNCERTAIN.unknownVen
    if (reason) refused.add(reason, href)
    else changes.push(apply(workload!))
  }
  return { status: UNCERTAIN.venActionStatus, json: { errors: refused.errors }, changes }
}

function whyNotUpgrade(workload: PceObject, release: PceObject): PceErrorItem | undefined {
  if (compareReleases(release.release as string, versionOf(workload)) < 0) return UNCERTAIN.venDowngrade
  const osId = workload.os_id
  return typeof osId === 'string' && !hasImageFor(release, osId) ? UNCERTAIN.venWithoutImage : undefined
}
