import type { ProjectFacts } from './manifest.js'

/** Facts about a release that could contradict each other. */
export interface ReleaseFacts {
  /** The tag; null if none was given and HEAD has none. */
  tag: string | null
  /** The commits of the tag and of HEAD; null if the tag does not exist. */
  commits: { tag: string | null; head: string }
  /** The lines of `git status --porcelain`, one for each uncommitted change. */
  changes: readonly string[]
  /** The versions of the project, by the name of the file that states each of them. */
  versions: Readonly<Record<string, string>>
  /** The text of CHANGELOG.md. */
  changelog: string
}

/** Maximum number of uncommitted changes that the message lists. */
const MOST_SHOWN = 5

/**
 * Finds everything that prevents a release, as one line each.
 *
 * @param isDry if true, uncommitted changes and a missing tag are allowed, for a release that is made as a test. Contradictions are
 * still refused.
 */
export function findProblems({ tag, commits, changes, versions, changelog }: ReleaseFacts, isDry: boolean): string[] {
  const version = versions['package.json']!
  const others = Object.entries(versions).filter(([, other]) => other !== version)
  return [
    ...(isDry || changes.length === 0
      ? []
      : [`the tree is dirty: ${changes.slice(0, MOST_SHOWN).join(', ')}${changes.length > MOST_SHOWN ? ' …' : ''}`]),
    ...(tag === null && !isDry ? ['HEAD has no tag: give one, or tag this commit'] : []),
    ...(tag !== null && tag !== `v${version}` ? [`the tag is ${tag}, and package.json says ${version}`] : []),
    ...(tag !== null && !isDry && commits.tag === null ? [`there is no tag ${tag}`] : []),
    ...(tag !== null && !isDry && commits.tag !== null && commits.tag !== commits.head
      ? [`the tag ${tag} is another commit than the one that is checked out`]
      : []),
    ...others.map(([file, other]) => `${file} says ${other}, and package.json ${version}`),
    ...(readNotes(changelog, version) === null
      ? [`CHANGELOG.md has no section [${version}] with a date and entries`]
      : []),
  ]
}

/** Returns the section of the changelog about a version, without its heading; null if there is none. */
export function readNotes(changelog: string, version: string): string | null {
  const heading = `## [${version}] - `
  const section = changelog.split(/^(?=## \[)/m).find((text) => text.startsWith(heading))
  const [first = '', ...rest] = section?.split('\n') ?? []
  const text = rest.join('\n').trim()
  return /^\d{4}-\d\d-\d\d$/.test(first.slice(heading.length)) && text !== '' ? text : null
}

/**
 * Finds facts that registries require but that are not decided for the project yet, as one line each. As long as there
 * are any, only dry runs are possible.
 */
export function findOpen({ mcpName, repository }: Pick<ProjectFacts, 'mcpName' | 'repository'>): string[] {
  return [
    ...(repository === undefined ? ['package.json has no repository, which provenance is about'] : []),
    ...(mcpName.startsWith('com.example/') ? [`${mcpName} is a placeholder: nobody can prove to own com.example`] : []),
  ]
}
