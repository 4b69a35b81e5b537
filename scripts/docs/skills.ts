/** A skill for agents. Its text is in `skills/<name>.md`. */
export interface Skill {
  /** The name of the skill and of its folder: lower-case letters, digits and single hyphens. */
  name: string
  /** A text for the agent that chooses a skill: what the skill does and when to use it. At most 1,024 characters. */
  description: string
  /** The requirements of the skill. At most 500 characters. */
  compatibility: string
}

export const SKILLS: readonly Skill[] = [
  {
    name: 'segmentation',
    description: [
      'Plans microsegmentation with the tools of the MCP server svc-mcp, which works on a policy compute engine (PCE, Illumio Core):',
      'inventory, labels, observed traffic, ringfences, rules, enforcement modes, what is pending.',
      'Use it when somebody asks who talks to an application, why traffic is blocked, to segment, ringfence or isolate an application,',
      'to label workloads, to review or provision policy changes, or to check compliance of segmentation.',
      'Works by dry runs and drafts, shows who would be cut off, and stops before provisioning, which a person does.',
    ].join(' '),
    compatibility: 'Needs the MCP server svc-mcp, connected to a PCE.',
  },
]

/** Returns the path of a skill's text below knowledge/. */
export const fileOf = ({ name }: Pick<Skill, 'name'>): string => `skills/${name}.md`
