import { listKnowledge } from './list-knowledge.js'

/**
 * What the lists of resources, templates and prompts need. In a build this is data, so that no text is read for a list
 * and the code that reads texts is loaded with the first of them (scripts/bundle-catalogue.mjs).
 */
export const catalogue = await listKnowledge()
