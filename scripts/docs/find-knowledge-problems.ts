import { CHANGELOG_URI, DOCUMENTS, fileOf } from '../../knowledge/documents.js'
import { findTextProblems } from '../../knowledge/fill-text.js'
import { fileOf as promptFileOf, PROMPTS } from '../../knowledge/prompts.js'
import { fileOf as skillFileOf, SKILLS } from './skills.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { AnyTool } from '../../tools/define.js'

/** The maximum length of a text in characters: three screens. */
const LONGEST = 6_000
/**
 * Maximum length of a skill in characters, without its generated lists. It is limited because an agent reads the whole
 * skill before it starts.
 */
const LONGEST_SKILL = 12_000
const DATED = /^As of \d{4}-\d{2}-\d{2}\b/m

/**
 * Finds problems in the texts of knowledge/, as one line each: names of tools, arguments and resources that do not
 * exist, texts that are missing or not served, documents and skills without a date, and texts that are too long.
 *
 * @param texts documents, prompts and skills, by path below knowledge/.
 */
export function findKnowledgeProblems(texts: ReadonlyMap<string, string>, tools: readonly AnyTool[]): string[] {
  const named = { tools: new Map(catalogueOf(tools).map((tool) => [tool.name, tool])) }
  const uris = new Set([...DOCUMENTS.map(({ uri }) => uri), CHANGELOG_URI])
  const values = new Map(PROMPTS.map((prompt) => [promptFileOf(prompt), prompt.valuesOf({})]))
  const skills = new Set(SKILLS.map(skillFileOf))
  const served = new Set([...DOCUMENTS.map(fileOf), ...values.keys(), ...skills])
  return [
    ...[...served].filter((path) => !texts.has(path)).map((path) => `${path}: is listed and not there`),
    ...[...texts].flatMap(([path, text]) => {
      const isSkill = skills.has(path)
      const own = isSkill ? text.replaceAll(/^\{\{#\w+\}\}$/gm, '') : text
      const longest = isSkill ? LONGEST_SKILL : LONGEST
      const problems = findTextProblems(own, { ...named, values: values.get(path) }, uris)
      if (!served.has(path)) problems.push('is there and not listed')
      if (!path.startsWith('prompts/') && !DATED.test(text)) problems.push('does not say as of when it is true')
      if (text.length > longest) problems.push(`has ${text.length} characters, more than ${longest}`)
      return problems.map((problem) => `${path}: ${problem}`)
    }),
  ]
}
