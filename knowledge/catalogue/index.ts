import { listKnowledge } from './list-knowledge.js'

/**
 * The lists of resources, templates and prompts. In a build, they are stored as data, so that answering with a list
 * reads no document. The code that reads documents is loaded when the first one is requested
 * (scripts/bundle-catalogue.mjs).
 */
export const catalogue = await listKnowledge()
