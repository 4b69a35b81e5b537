import type { PceObject } from '../../schemas/pce/reference.js'
import { OS_RELEASES, VEN_RELEASES } from '../estate/data/releases.js'
import type { Json } from '../model.js'
import { orgPath, type World } from '../world.js'
import { compareReleases } from './compare-releases.js'

export const VEN_TYPES = ['server', 'endpoint'] as const

/**
 * The release of this PCE itself. It is also the default release for VENs, and the release that is assumed for VENs
 * that do not report theirs.
 */
export const BORN_RELEASE = VEN_RELEASES[0]

/** Creates the VEN releases, newest first. */
export function seedVenReleases(world: World): void {
  const releases = [...new Set<string>(VEN_RELEASES)].sort((one, other) => compareReleases(other, one))
  for (const release of releases) {
    const href = orgPath(world, `/software/ven/releases/${release}`)
    releasesOf(world).set({
      href,
      release,
      default_release_ven_types: release === BORN_RELEASE ? [...VEN_TYPES] : [],
      org_id: world.orgId,
      ven_types: [...VEN_TYPES],
      images: imagesOf(release, href),
    })
  }
}

export function findRelease(world: World, release: string): PceObject | undefined {
  return releasesOf(world)
    .all()
    .find((candidate) => candidate.release === release)
}

/**
 * Returns true if a release has a package for the first two parts of an `os_id`, such as `ubuntu-x86_64` in
 * `ubuntu-x86_64-jammy`.
 */
export function hasImageFor(release: PceObject, osId: string): boolean {
  const [distribution, architecture] = osId.split('-')
  return (release.images as Json[]).some((image) => {
    return image.distribution === distribution && image.architecture === architecture
  })
}

export function releasesOf(world: World) {
  return world.store('ven_releases')
}

export function defaultTypes(release: PceObject): string[] {
  return release.default_release_ven_types as string[]
}

/** Lists one package for every type of operating system in the estate. */
function imagesOf(release: string, href: string): Json[] {
  const systems = Object.values(OS_RELEASES).flatMap((known) => known.map(([id]) => id.split('-')))
  const packages = new Map(
    systems.map(([distribution, architecture]) => [`${distribution}-${architecture}`, distribution]),
  )
  return [...packages].map(([name, distribution]) => {
    const filename = `illumio-ven-${release}.${name}.${distribution === 'win' ? 'msi' : 'pkg'}`
    return {
      release,
      distribution,
      architecture: name.slice(distribution!.length + 1),
      major_version: 1,
      min_minor_version: 0,
      max_minor_version: null,
      filename,
      href: `${href}/images/${filename}`,
      ven_types: distribution === 'win' ? [...VEN_TYPES] : ['server'],
    }
  })
}
