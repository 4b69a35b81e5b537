import type { Tool } from '@modelcontextprotocol/sdk/types.js'

/** The schemas of a tool as tools/list shows them. */
export type ListedSchemas = Required<Pick<Tool, 'inputSchema' | 'outputSchema'>>

/**
 * The listed schemas of all tools, by name. To compute them takes longer than everything else that a start does, so the
 * build computes them and puts them in place of this null (scripts/build.mjs).
 */
export const LISTED_SCHEMAS: Readonly<Record<string, ListedSchemas>> | null = null
