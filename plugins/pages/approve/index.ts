import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Porter } from '../porter.js'
import type { ApproveOptions } from '../ports.js'

export default async function approve(
  _app: FastifyInstance,
  _options: ApproveOptions & { publicUrl: string; porter: Porter<FastifyRequest, FastifyReply> },
): Promise<void> {}
