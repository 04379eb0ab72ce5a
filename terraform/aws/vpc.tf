resource "aws_security_group" "function" {
  count = var.vpc == null ? 0 : 1

  name        = "${var.name}-function"
  description = "The function ${var.name}: out to the database and to HTTPS, nothing in"
  vpc_id      = var.vpc.id
  tags        = merge(var.tags, { Name = "${var.name}-function" })

  # Lambda keeps network interfaces for a while after the function: a new group first, so that the old one can go.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_egress_rule" "database" {
  count = try(var.vpc.database_security_group_id, null) == null ? 0 : 1

  security_group_id            = aws_security_group.function[0].id
  description                  = "The database"
  referenced_security_group_id = var.vpc.database_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = var.vpc.database_port
  to_port                      = var.vpc.database_port
}

resource "aws_vpc_security_group_ingress_rule" "database" {
  count = try(var.vpc.database_security_group_id, null) == null ? 0 : 1

  security_group_id            = var.vpc.database_security_group_id
  description                  = "The function ${var.name}"
  referenced_security_group_id = aws_security_group.function[0].id
  ip_protocol                  = "tcp"
  from_port                    = var.vpc.database_port
  to_port                      = var.vpc.database_port
}

resource "aws_vpc_security_group_egress_rule" "database_cidr" {
  for_each = toset(try(var.vpc.database_cidr_blocks, []))

  security_group_id = aws_security_group.function[0].id
  description       = "The database"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = var.vpc.database_port
  to_port           = var.vpc.database_port
}

# Secrets Manager, by an endpoint in the VPC or through a NAT gateway, and what jobs call by HTTPS.
resource "aws_vpc_security_group_egress_rule" "https" {
  count = var.vpc == null ? 0 : 1

  security_group_id = aws_security_group.function[0].id
  description       = "HTTPS: Secrets Manager, and what jobs call"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}
