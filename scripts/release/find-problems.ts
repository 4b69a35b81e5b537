import type { ProjectFacts } from './manifest.js'

/** What a release is made of, as far as it can contradict itself. */
export interface ReleaseFacts {
  /** Null where none was given and HEAD has none. */
  tag: string | null
  /** Commit of the tag and of HEAD; null where the tag does not exist. */
  commits: { tag: string | null; head: string }
  /** Lines of `git status --porcelain`. */
  changes: readonly string[]
  /** By the file that says it. */
  versions: Readonly<Record<string, string>>
  /** CHANGELOG.md. */
  changelog: string
}

/** Lines of a list that are shown. */
const MOST_SHOWN = 5

/**
 * Everything that keeps a release from being made, a line each.
 *
 * @param isDry the tree may be dirty and there may be no tag: the release is made for its own sake. What contradicts itself is still refused.
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

/** What the changelog says of a version, without its heading; null where it says nothing. */
export function readNotes(changelog: string, version: string): string | null {
  const heading = `## [${version}] - `
  const section = changelog.split(/^(?=## \[)/m).find((text) => text.startsWith(heading))
  const [first = '', ...rest] = section?.split('\n') ?? []
  const text = rest.join('\n').trim()
  return /^\d{4}-\d\d-\d\d$/.test(first.slice(heading.length)) && text !== '' ? text : null
}

/** What the project does not know yet, and registries want: a line each. Until it does, only a dry run is made. */
export function findOpen({ mcpName, repository }: Pick<ProjectFacts, 'mcpName' | 'repository'>): string[] {
  return [
    ...(repository === undefined ? ['package.json has no repository, which provenance is about'] : []),
    ...(mcpName.startsWith('com.example/') ? [`${mcpName} is a placeholder: nobody can prove to own com.example`] : []),
  ]
}
