import type { ClientResult } from '../clients/results.js'
import { renderTable } from './markdown.js'

const TITLES = {
  tools: 'Tools',
  document: 'Document',
  read: 'Read',
  dryRun: 'Dry run',
  unknownArgument: 'Unknown argument',
  refusal: 'Refusal',
} as const

/** Renders the table in docs/clients/README.md of what was found with real clients. */
export function renderTriedClients(results: Readonly<Record<string, ClientResult>>): string {
  return renderTable(
    ['Client', 'Version', 'Node.js', ...Object.values(TITLES)],
    Object.values(results).map(({ title, versions, node, steps }) => [
      title,
      Object.entries(versions)
        .map(([name, version]) => `\`${name}\` ${version}`)
        .join(', '),
      node,
      ...(Object.keys(TITLES) as (keyof typeof TITLES)[]).map((step) =>
        describe(steps.stdio?.[step], steps.http?.[step]),
      ),
    ]),
  )
}

/** Returns the text of a cell: one word if both transports gave it, or each with its word. */
function describe(stdio: string | undefined, http: string | undefined): string {
  if (stdio === http && stdio !== undefined) return stdio
  return [stdio !== undefined && `stdio: ${stdio}`, http !== undefined && `HTTP: ${http}`]
    .filter((word) => word !== false)
    .join('; ')
}
