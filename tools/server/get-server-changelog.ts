import { Type, type Static } from '@sinclair/typebox'
import coerce from 'semver/functions/coerce.js'
import compare from 'semver/functions/compare.js'
import valid from 'semver/functions/valid.js'
import { Nullable } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../../domain/call.js'
import { quote } from '../../domain/text/escape-text.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  server_version: Type.String({ description: 'Running release' }),
  latest_release: Type.Optional(Nullable(Type.String({ description: 'Newest release in the changelog' }))),
  queried_since: Type.Optional(Nullable(Type.String({ description: 'As asked' }))),
  unlearn: Type.Optional(
    Type.Array(
      Type.Object({
        version: Type.String({ description: 'Release' }),
        item: Type.String({ description: 'What no longer holds' }),
      }),
      { description: 'Habits to drop' },
    ),
  ),
  releases: Type.Optional(
    Type.Array(
      Type.Object({
        version: Type.String({ description: 'Release, or Unreleased' }),
        date: Nullable(Type.String({ description: 'YYYY-MM-DD' })),
        sections: Type.Record(Type.String(), Type.Array(Type.String()), { description: 'Items by section' }),
      }),
      { description: 'Newest first' },
    ),
  ),
  note: Type.Optional(Type.String({ description: 'What to know about the answer' })),
})

export default defineTool({
  name: 'get-server-changelog',
  summary: 'What changed in this server, and habits to unlearn.',
  effect: 'read',
  toolset: 'server',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: false,
  requiresConfirm: false,
  input: Type.Object(
    {
      since: Type.Optional(Type.String({ description: 'Known release, e.g. 0.2.0', listed: 'e.g. 0.2.0' })),
      unlearn_only: Type.Optional(Type.Boolean({ default: false, description: 'No releases', listed: '' })),
    },
    { additionalProperties: false },
  ),
  output,
  example: {},
  async handler({ since, unlearn_only: unlearnOnly }, { server }): Promise<Static<typeof output>> {
    const text = await readChangelog(server)
    if (text === null)
      return { server_version: server.version, releases: [], note: 'This installation has no changelog.' }
    const all = releasesOf(text)
    const known = since === undefined ? null : readVersion(since)
    const newer =
      known === null ? all : all.filter(({ version }) => isUnreleased(version) || compare(toSemver(version), known) > 0)
    return {
      server_version: server.version,
      latest_release: all.find(({ version }) => !isUnreleased(version))?.version ?? null,
      queried_since: since ?? null,
      unlearn: newer.flatMap(unlearnItems),
      ...(unlearnOnly === true ? {} : { releases: newer }),
      ...(since !== undefined &&
        known === null && { note: `${quote(since)} is not a version, so every release is shown.` }),
      ...(all.length === 0 && { note: 'The changelog lists no releases.' }),
    }
  },
})

let parsed: { text: string; releases: Release[] } | undefined

/** Returns the releases, newest first. The changelog does not change, so it is parsed only once. */
function releasesOf(text: string): Release[] {
  if (parsed?.text !== text) parsed = { text, releases: parseChangelog(text).sort((a, b) => compareReleases(b, a)) }
  return parsed.releases
}

/**
 * Reads the changelog; returns null if the file was not shipped with the server. Throws if the file exists but cannot
 * be read.
 */
async function readChangelog(server: ToolContext['server']): Promise<string | null> {
  try {
    return await server.changelog()
  } catch (cause) {
    throw new ToolError('changelog_unavailable', 'The changelog of this installation cannot be read.', {}, { cause })
  }
}

function unlearnItems({ version, sections }: Release): { version: string; item: string }[] {
  return Object.entries(sections)
    .filter(([section]) => section.startsWith('Unlearn'))
    .flatMap(([, items]) => items.map((item) => ({ version, item })))
}

/**
 * Returns the release that a caller names. Returns null for any other string, including dates, which look like
 * versions.
 */
function readVersion(since: string) {
  const isVersion = /^\s*v?\d+(?:\.\d+){0,2}\s*$/i.test(since) || valid(since) !== null
  return isVersion ? coerce(since, { includePrerelease: true }) : null
}

const isUnreleased = (version: string) => version.toLowerCase() === 'unreleased'

/** Converts a version to semver. Short versions are padded with zeros; anything else counts as the oldest version. */
const toSemver = (version: string) => coerce(version, { includePrerelease: true }) ?? '0.0.0'

function compareReleases(a: Release, b: Release): number {
  if (isUnreleased(a.version) || isUnreleased(b.version))
    return Number(isUnreleased(a.version)) - Number(isUnreleased(b.version))
  return compare(toSemver(a.version), toSemver(b.version))
}

/** One release in a changelog in the format of Keep a Changelog. */
export interface Release {
  /** The version as written; `Unreleased` for changes that have not been released yet. */
  version: string
  date: string | null
  /** The items of the release, by the name of their section. */
  sections: Record<string, string[]>
}

const RELEASE = /^##\s+\[?([^\]\s(]+)\]?(?:\([^)]*\))?(?:\s+-\s+(\S+))?/
const SECTION = /^###\s(.*\S)/
const BULLET = /^[-*+]\s(.*)$/

/**
 * Parses a changelog: `## [x.y.z] - date`, `### Section`, `- item`. Wrapped and indented lines of an item are joined
 * with single blanks. Text outside items is an introduction and is left out.
 */
function parseChangelog(text: string): Release[] {
  const releases: Release[] = []
  let items: string[] | null = null
  let open = false
  for (const line of text.split(/\r?\n/)) {
    const release = RELEASE.exec(line)
    const section = SECTION.exec(line)
    const bullet = BULLET.exec(line)
    const current = releases[releases.length - 1]
    if (release !== null) {
      releases.push({ version: release[1] as string, date: release[2] ?? null, sections: {} })
      items = null
    } else if (section !== null && current !== undefined) {
      items = current.sections[(section[1] as string).trim()] ??= []
    } else if (bullet !== null && items !== null) {
      items.push((bullet[1] as string).trim())
    } else if (open && items !== null && items.length > 0 && /^\s+\S/.test(line)) {
      items.push(`${items.pop() ?? ''} ${line.trim()}`)
      continue
    }
    open = bullet !== null
  }
  return releases
}
