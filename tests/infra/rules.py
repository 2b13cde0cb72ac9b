"""What must hold of the templates and no linter sees. Each rule yields what breaks it; nothing means that it holds.

Sources of the numbers: Amazon ECS Developer Guide, "Task definition parameters for Fargate" (pairs of CPU and memory, stop timeout);
Amazon RDS User Guide, "Maximum number of database connections" (connections by memory); IAM, "Actions, resources, and condition
keys" (which action knows no resource).
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterator

from templates import Template, Templates, alternatives, attributes, display, environment, imports, items, listed, texts, walk

Rule = Callable[[Templates], Iterator[str]]
RULES: dict[str, Rule] = {}

SERVICES = 3
# Old and new tasks of a rolling deployment together: MaximumPercent 200.
ROLLING = 2
MIGRATOR = 2
# superuser_reserved_connections (3), rds.rds_superuser_reserved_connections (2), and people: 15 together with some room.
ADMIN = 18
# The services' own defaults, where a template is silent.
DEFAULTS = {
    "REQUEST_TIMEOUT_MS": 30_000,
    "DOCUMENT_UPLOAD_TIMEOUT_SECONDS": 900,
    "HEADER_READ_TIMEOUT_MS": 75_000,
    "SHUTDOWN_DELAY_MS": 2_000,
    "SHUTDOWN_DEADLINE_MS": 25_000,
}
FARGATE_STOP_TIMEOUT_MAX = 120
# Most connections of a task.
POOL = 14
# Memory in MiB that Fargate takes with each number of CPU units.
FARGATE = {
    256: {512, 1024, 2048},
    512: set(range(1024, 4096 + 1, 1024)),
    1024: set(range(2048, 8192 + 1, 1024)),
    2048: set(range(4096, 16384 + 1, 1024)),
    4096: set(range(8192, 30720 + 1, 1024)),
    8192: set(range(16384, 61440 + 1, 4096)),
    16384: set(range(32768, 122880 + 1, 8192)),
}
# A Multi-AZ failover of RDS: "typically 60-120 seconds".
FAILOVER_SECONDS = 120


def rule(function: Rule) -> Rule:
    RULES[function.__name__] = function
    return function


def _env(template: Template, container: dict[str, Any], name: str) -> int:
    found = environment(container).get(name)
    numbers = [template.number(value) for value in found] if found else [DEFAULTS[name]]
    assert all(number is not None for number in numbers), f"{name} is no number"
    return max(numbers)


def _service_container(templates: Templates) -> dict[str, Any]:
    return templates["service"].resource("TaskDefinition")["ContainerDefinitions"][0]


# ---- Times ------------------------------------------------------------------------------------------------------------------------


@rule
def a_request_ends_before_its_task(templates: Templates) -> Iterator[str]:
    """Longest request < deregistration delay < stop timeout <= 120 s, and the task's own drain fits between."""
    service = templates["service"]
    container = _service_container(templates)
    longest = max(_env(service, container, "REQUEST_TIMEOUT_MS") / 1000, _env(service, container, "DOCUMENT_UPLOAD_TIMEOUT_SECONDS"))
    delay = attributes(service.resource("TargetGroup"), "TargetGroupAttributes").get("deregistration_delay.timeout_seconds")
    # What Elastic Load Balancing and Fargate take when nothing is said.
    delay = service.number(delay) if delay is not None else 300
    stop = service.number(container.get("StopTimeout", 30))
    listening = _env(service, container, "SHUTDOWN_DELAY_MS") / 1000
    drain = _env(service, container, "SHUTDOWN_DEADLINE_MS") / 1000
    if not longest < delay:
        yield f"a request may take {longest} s, its target is deregistered after {delay} s"
    if not delay < stop:
        yield f"the deregistration delay of {delay} s is not below the stop timeout of {stop} s"
    if not stop <= FARGATE_STOP_TIMEOUT_MAX:
        yield f"the stop timeout of {stop} s is above Fargate's {FARGATE_STOP_TIMEOUT_MAX} s"
    for where, template, _, other in templates.containers():
        if not template.number(other.get("StopTimeout", 30)) <= FARGATE_STOP_TIMEOUT_MAX:
            yield f"{where}: the stop timeout is above Fargate's {FARGATE_STOP_TIMEOUT_MAX} s"
    if not longest < drain:
        yield f"a request may take {longest} s, a stopping task waits {drain} s for it"
    if not listening + drain < stop:
        yield f"a stopping task takes {listening + drain} s and is killed after {stop} s"


@rule
def a_health_check_times_out_before_the_next(templates: Templates) -> Iterator[str]:
    for where, group in templates.resources("AWS::ElasticLoadBalancingV2::TargetGroup"):
        if not group.get("HealthCheckTimeoutSeconds", 5) < group.get("HealthCheckIntervalSeconds", 30):
            yield f"{where}: timeout is not below the interval"
    for where, _, _, container in templates.containers():
        check = container.get("HealthCheck")
        if check and not check.get("Timeout", 5) < check.get("Interval", 30):
            yield f"{where}: timeout is not below the interval"


@rule
def a_failover_of_the_database_restarts_no_task(templates: Templates) -> Iterator[str]:
    """ECS replaces tasks that are unhealthy in their target group, and /ready asks the database."""
    for where, group in templates.resources("AWS::ElasticLoadBalancingV2::TargetGroup"):
        patience = group.get("HealthCheckIntervalSeconds", 30) * group.get("UnhealthyThresholdCount", 2)
        if group.get("HealthCheckPath") != "/live" and not patience > FAILOVER_SECONDS:
            yield f"{where}: unhealthy after {patience} s, a failover takes {FAILOVER_SECONDS} s"
    command = _service_container(templates).get("HealthCheck", {}).get("Command", [])
    if command[:1] != ["CMD"] or command[2:] != ["healthcheck"]:
        yield f"service: the container's check is {command}; it must be the binary's own, of liveness, without a shell"


@rule
def idle_connections_are_closed_by_the_load_balancer(templates: Templates) -> Iterator[str]:
    balancer = attributes(templates["cluster"].resource("LoadBalancer"), "LoadBalancerAttributes")
    idle = int(balancer.get("idle_timeout.timeout_seconds", 60))
    read = _env(templates["service"], _service_container(templates), "HEADER_READ_TIMEOUT_MS") / 1000
    if not idle < read:
        yield f"the load balancer keeps a connection for {idle} s, a task for {read} s"


# ---- Tasks ------------------------------------------------------------------------------------------------------------------------


@rule
def cpu_and_memory_are_a_pair_of_fargate(templates: Templates) -> Iterator[str]:
    for where, template, task in templates.task_definitions():
        if isinstance(task["Cpu"], dict):
            sizes = template.body["Mappings"]["TaskSizes"]
            size = task["Cpu"]["Fn::FindInMap"][1]["Ref"]
            if task["Memory"]["Fn::FindInMap"][1] != {"Ref": size}:
                yield f"{where}: CPU and memory are of different sizes"
            allowed = template.parameter(size)["AllowedValues"]
            if set(allowed) != set(sizes):
                yield f"{where}: {size} allows {sorted(set(allowed) ^ set(sizes))} without a pair, or a pair is not allowed"
            pairs = {name: (pair["Cpu"], pair["Memory"]) for name, pair in sizes.items()}
        else:
            pairs = {"fixed": (task["Cpu"], task["Memory"])}
        for name, (cpu, memory) in pairs.items():
            if int(memory) not in FARGATE.get(int(cpu), set()):
                yield f"{where}: Fargate has no {cpu} CPU units with {memory} MiB"
            if name != "fixed" and name != f"{cpu}-{memory}":
                yield f"{where}: the size {name} is {cpu}-{memory}"


@rule
def port_and_name_of_the_container_match(templates: Templates) -> Iterator[str]:
    service, network = templates["service"], templates["network"]
    container = _service_container(templates)
    ports = [mapping["ContainerPort"] for mapping in container.get("PortMappings", [])]
    listened = [int(value) for value in environment(container).get("PORT", [8080])]
    for target in service.resource("EcsService").get("LoadBalancers", []):
        if target["ContainerName"] != container["Name"]:
            yield f"the service sends to {display(target['ContainerName'])}, the container is {display(container['Name'])}"
        if target["ContainerPort"] not in ports:
            yield f"the service sends to port {target['ContainerPort']}, the container has {ports}"
    if listened != ports:
        yield f"the task listens on {listened}, the container has {ports}"
    if service.resource("TargetGroup").get("Port") not in ports:
        yield "the target group has another port than the container"
    opened = [(one["FromPort"], one["ToPort"]) for one in network.resource("TaskSecurityGroup").get("SecurityGroupIngress", [])]
    ingress = network.resource("KeySetIngress")
    opened.append((ingress["FromPort"], ingress["ToPort"]))
    for first, last in opened:
        if [first, last] != [ports[0], ports[0]]:
            yield f"the tasks' security group opens {first} to {last}, the container has {ports}"


@rule
def tasks_run_on_the_architecture_that_the_image_is_for(templates: Templates) -> Iterator[str]:
    for where, template, task in templates.task_definitions():
        if task.get("RuntimePlatform", {}).get("CpuArchitecture") != {"Ref": "Architecture"}:
            yield f"{where}: the architecture is not the parameter's"
        if set(template.parameter("Architecture")["AllowedValues"]) != {"X86_64", "ARM64"}:
            yield f"{where}: Architecture is not X86_64 or ARM64"


@rule
def tasks_cannot_write_their_own_files(templates: Templates) -> Iterator[str]:
    for where, template, _, container in templates.containers():
        if template.name in ("service", "migrate"):
            if container.get("ReadonlyRootFilesystem") is not True:
                yield f"{where}: the root file system is not read-only"
            if container.get("Privileged") or container.get("User"):
                yield f"{where}: runs as another user than the image's"


@rule
def a_log_never_stops_a_task(templates: Templates) -> Iterator[str]:
    groups = {properties["LogGroupName"]["Fn::Sub"] for _, properties in templates["data"].resources("AWS::Logs::LogGroup")}
    for where, template, _, container in templates.containers():
        log = container.get("LogConfiguration", {})
        options = log.get("Options", {})
        if log.get("LogDriver") != "awslogs" or options.get("mode") != "non-blocking":
            yield f"{where}: the log is not awslogs, non-blocking"
        size = re.fullmatch(r"(\d+)m", str(options.get("max-buffer-size", "")))
        if not size or int(size[1]) < 25:
            yield f"{where}: the log's buffer is below 25m"
        group = options.get("awslogs-group", {}).get("Fn::Sub", "")
        named = [group.replace("${Service}", one) for one in template.parameter("Service")["AllowedValues"]] if "${Service}" in group else [group]
        for one in named:
            if one not in groups:
                yield f"{where}: the log group {one} is made nowhere"


@rule
def logs_are_kept_for_a_time_and_not_for_ever(templates: Templates) -> Iterator[str]:
    for where, group in templates.resources("AWS::Logs::LogGroup"):
        if "RetentionInDays" not in group:
            yield f"{where}: has no retention"


@rule
def a_bad_revision_is_rolled_back(templates: Templates) -> Iterator[str]:
    for where, service in templates.resources("AWS::ECS::Service"):
        deployment = service.get("DeploymentConfiguration", {})
        if deployment.get("DeploymentCircuitBreaker") != {"Enable": True, "Rollback": True}:
            yield f"{where}: no circuit breaker with rollback"
        if deployment.get("MinimumHealthyPercent", 100) < 100:
            yield f"{where}: a deployment takes tasks away before new ones are there"
        if deployment.get("MaximumPercent", 200) > 100 * ROLLING:
            yield f"{where}: a deployment runs more than {ROLLING} times the tasks, which the connections are not counted for"


@rule
def an_update_keeps_the_number_of_tasks(templates: Templates) -> Iterator[str]:
    for where, service in templates.resources("AWS::ECS::Service"):
        if "DesiredCount" in service:
            yield f"{where}: DesiredCount sets back what scaling has decided"


@rule
def tasks_scale_by_cpu_and_by_requests(templates: Templates) -> Iterator[str]:
    service = templates["service"]
    metrics = set()
    for where, policy in service.resources("AWS::ApplicationAutoScaling::ScalingPolicy"):
        tracking = policy["TargetTrackingScalingPolicyConfiguration"]["PredefinedMetricSpecification"]
        metrics.add(tracking["PredefinedMetricType"])
        if policy.get("ScalingTargetId") != {"Ref": "ScalableTarget"}:
            yield f"{where}: scales something else"
        if tracking["PredefinedMetricType"] == "ALBRequestCountPerTarget" and "TargetGroup.TargetGroupFullName" not in str(tracking.get("ResourceLabel")):
            yield f"{where}: counts the requests of something else"
    for metric in {"ECSServiceAverageCPUUtilization", "ALBRequestCountPerTarget"} - metrics:
        yield f"service: no scaling by {metric}"
    target = service.resource("ScalableTarget")
    if target.get("MaxCapacity") != {"Ref": "MaxTasks"}:
        yield "service: scaling has another limit than MaxTasks, which the connections are counted for"


# ---- Who may do what ----------------------------------------------------------------------------------------------------------------


def _statements(templates: Templates) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, role in templates.resources("AWS::IAM::Role"):
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield where, statement
        if role.get("ManagedPolicyArns"):
            yield where, {"Action": "a managed policy", "Resource": "*"}
    for where, policy in templates.resources("AWS::IAM::Policy"):
        for statement in policy["PolicyDocument"]["Statement"]:
            yield where, statement


@rule
def roles_name_what_they_are_for(templates: Templates) -> Iterator[str]:
    """No wildcard for a resource, but where IAM knows none; none in an action."""
    for where, statement in _statements(templates):
        actions = listed(statement["Action"])
        for resource in items(listed(statement["Resource"])):
            if "*" in texts(resource) and actions != ["ecr:GetAuthorizationToken"]:
                yield f"{where}: {', '.join(actions)} on everything"
            for text in texts(resource):
                # A bucket's folder and a log group's streams may end in one; nothing may begin with one.
                if "*" in text.rstrip("*") or re.search(r":::\*|:log-group:\*|:secret:\*", text):
                    yield f"{where}: {text} is too wide"
        for action in actions:
            if "*" in action:
                yield f"{where}: {action} is too wide"


def _role(template: Template, reference: Any) -> dict[str, Any]:
    return template.resource(reference["Fn::GetAtt"][0]) if reference else {}


@rule
def a_task_with_secrets_can_read_them(templates: Templates) -> Iterator[str]:
    """An execution role, with every secret and every log by name; without one ECS starts nothing, and says so late."""
    for where, template, task in templates.task_definitions():
        role = _role(template, task.get("ExecutionRoleArn"))
        secrets = {name for container in task["ContainerDefinitions"] for name in imports(container.get("Secrets"))}
        if not role:
            yield f"{where}: no execution role"
            continue
        granted, logged = set(), set()
        for policy in role["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                if "secretsmanager:GetSecretValue" in listed(statement["Action"]):
                    granted |= set(imports(statement["Resource"]))
                if "logs:PutLogEvents" in listed(statement["Action"]):
                    logged |= set(texts(statement["Resource"]))
        for name in secrets - granted:
            yield f"{where}: the execution role cannot read {name}"
        for name in granted - secrets:
            yield f"{where}: the execution role reads {name} for nothing"
        for container in task["ContainerDefinitions"]:
            group = container["LogConfiguration"]["Options"]["awslogs-group"]["Fn::Sub"]
            if not any(text.endswith(f":log-group:{group}:*") for text in logged):
                yield f"{where}: the execution role cannot write the log {group}"


@rule
def secrets_are_given_as_secrets(templates: Templates) -> Iterator[str]:
    secret = re.compile(r"PASSWORD|SECRET|SIGNING_KEYS|DATABASE_URL|TOKEN$")
    for where, _, _, container in templates.containers():
        for name in environment(container):
            if secret.search(name):
                yield f"{where}: {name} stands in the task definition"
        for entry in items(container.get("Secrets")):
            if not imports(entry["ValueFrom"]):
                yield f"{where}: {entry['Name']} does not name a secret of the data stack"
    for where, secret_properties in templates.resources("AWS::SecretsManager::Secret"):
        value = secret_properties.get("SecretString")
        if isinstance(value, str):
            yield f"{where}: its value stands in the template"


@rule
def a_service_has_its_own_database_user(templates: Templates) -> Iterator[str]:
    for name in imports(templates["service"].body):
        if "Admin" in name or name.endswith("Password"):
            yield f"service: uses {name}"
    urls = [name for entry in items(_service_container(templates).get("Secrets")) if entry["Name"] == "DATABASE_URL" for name in imports(entry)]
    if urls != ["${Name}-data-${Service}-DatabaseUrl"]:
        yield f"service: DATABASE_URL is {urls}"


# ---- Database -----------------------------------------------------------------------------------------------------------------------


@rule
def the_connections_suffice_for_a_rolling_deployment(templates: Templates) -> Iterator[str]:
    """Services x most tasks x 2 x pool + migrator + administrator <= max_connections, for every class and its MaxTasks."""
    service, data = templates["service"], templates["data"]
    tasks, pool = service.parameter("MaxTasks"), service.parameter("PoolMax")
    container = _service_container(templates)
    if environment(container).get("DB_POOL_MAX") != [{"Ref": "PoolMax"}]:
        yield "service: DB_POOL_MAX is not the parameter that is counted"
    if pool["MaxValue"] != POOL:
        yield f"service: PoolMax may be {pool['MaxValue']}, tasks are counted with {POOL}"
    classes = data.body["Mappings"]["Classes"]
    fitting = {}
    for name in data.parameter("DatabaseClass")["AllowedValues"]:
        limit = int(classes.get(name, {}).get("MaxConnections", 0))
        fitting[name] = (limit - MIGRATOR - ADMIN) // (SERVICES * ROLLING * POOL)
        if classes.get(name, {}).get("MaxTasks") != fitting[name]:
            yield f"{name}: {limit} connections are for {fitting[name]} tasks of each service"
        if classes.get(name, {}).get("ConnectionsAlarm") != limit * 8 // 10:
            yield f"{name}: the alarm is not at four fifths of {limit} connections"
        # RDS' own choice for this memory; more than that, and the processes themselves use it up.
        suggested = int(classes.get(name, {}).get("MemoryMib", 0)) * 1024 * 1024 // 9_531_392
        if limit > suggested:
            yield f"{name}: {limit} connections are more than its memory is for ({suggested})"
    if tasks["MaxValue"] != max(fitting.values()) or service.parameter("MinTasks")["MaxValue"] != tasks["MaxValue"]:
        yield f"service: the largest class is for {max(fitting.values())} tasks, {tasks['MaxValue']} are let in"
    if tasks["Default"] > min(fitting.values()):
        yield f"service: the smallest class is for {min(fitting.values())} tasks, {tasks['Default']} are the default"
    if pool["Default"] > pool["MaxValue"] or tasks["Default"] > tasks["MaxValue"]:
        yield "service: a default is above its limit"


@rule
def what_goes_wrong_raises_an_alarm(templates: Templates) -> Iterator[str]:
    wanted = {
        "service": {"HTTPCode_Target_5XX_Count", "UnHealthyHostCount", "CPUUtilization", "TargetResponseTime"},
        "cluster": {"HTTPCode_ELB_5XX_Count"},
        "data": {"CPUUtilization", "DatabaseConnections", "FreeableMemory", "FreeStorageSpace", "FreeLocalStorage"},
    }
    for name, metrics in wanted.items():
        seen = set()
        for where, alarm in templates[name].resources("AWS::CloudWatch::Alarm"):
            seen |= set(alternatives(alarm["MetricName"]))
            if alarm.get("AlarmActions") != {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}:
                yield f"{where}: tells nobody"
            less = any(str(metric).startswith("Free") for metric in alternatives(alarm["MetricName"]))
            if alarm["ComparisonOperator"] != ("LessThanThreshold" if less else "GreaterThanThreshold"):
                yield f"{where}: looks the wrong way"
            if alarm["MetricName"] == "DatabaseConnections" and alarm["Threshold"] != {"Fn::FindInMap": ["Classes", {"Ref": "DatabaseClass"}, "ConnectionsAlarm"]}:
                yield f"{where}: does not follow the class"
        for metric in metrics - seen:
            yield f"{name}: no alarm on {metric}"


@rule
def the_database_speaks_tls_and_says_who_it_is(templates: Templates) -> Iterator[str]:
    data = templates["data"]
    for kind in ("AWS::RDS::DBParameterGroup", "AWS::RDS::DBClusterParameterGroup"):
        for where, group in data.resources(kind):
            if str(group["Parameters"].get("rds.force_ssl")) != "1":
                yield f"{where}: connections without TLS are let in"
            if group["Parameters"].get("max_connections") != {"Fn::FindInMap": ["Classes", {"Ref": "DatabaseClass"}, "MaxConnections"]}:
                yield f"{where}: max_connections is not what is counted with"
    for where, instance in data.resources("AWS::RDS::DBInstance"):
        if "DBClusterIdentifier" not in instance and instance.get("DBParameterGroupName") != {"Ref": "DatabaseParameters"}:
            yield f"{where}: has no parameter group of ours"
    for where, cluster in data.resources("AWS::RDS::DBCluster"):
        if cluster.get("DBClusterParameterGroupName") != {"Ref": "ClusterParameters"}:
            yield f"{where}: has no parameter group of ours"
    urls = [text for text in texts(data.body["Resources"]) if text.startswith("postgres://")]
    if len(urls) != SERVICES + 1:
        yield f"data: {len(urls)} URLs of the database, of three services and the migrator"
    for url in urls:
        if "sslmode=verify-full" not in url or "sslrootcert=${DatabaseCaFile}" not in url:
            yield f"data: {url.split(':')[1][2:]} does not verify whom it speaks to"
        if "{{resolve:secretsmanager:" not in url:
            yield f"data: {url.split(':')[1][2:]} has its password in the template"


@rule
def data_is_encrypted_at_rest(templates: Templates) -> Iterator[str]:
    for where, cluster in templates.resources("AWS::RDS::DBCluster"):
        if cluster.get("StorageEncrypted") is not True:
            yield f"{where}: not encrypted"
    for where, instance in templates.resources("AWS::RDS::DBInstance"):
        # An instance of a cluster has the cluster's storage.
        if "DBClusterIdentifier" not in instance and instance.get("StorageEncrypted") is not True:
            yield f"{where}: not encrypted"
    for where, bucket in templates.resources("AWS::S3::Bucket"):
        if not bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration"):
            yield f"{where}: not encrypted"


# ---- Buckets ------------------------------------------------------------------------------------------------------------------------


@rule
def unfinished_uploads_are_aborted(templates: Templates) -> Iterator[str]:
    for where, bucket in templates.resources("AWS::S3::Bucket"):
        days = [one["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]
                for one in bucket.get("LifecycleConfiguration", {}).get("Rules", [])
                if "AbortIncompleteMultipartUpload" in one and one["Status"] == "Enabled"]
        if not days or min(days) > 7:
            yield f"{where}: parts of unfinished uploads stay, and are charged for"


@rule
def documents_have_versions(templates: Templates) -> Iterator[str]:
    if templates["data"].resource("Documents").get("VersioningConfiguration") != {"Status": "Enabled"}:
        yield "data.Documents: not versioned"


# ---- Network ------------------------------------------------------------------------------------------------------------------------


@rule
def database_buckets_and_tasks_are_not_public(templates: Templates) -> Iterator[str]:
    network = templates["network"]
    for where, instance in templates.resources("AWS::RDS::DBInstance"):
        if instance.get("PubliclyAccessible") is not False:
            yield f"{where}: publicly accessible"
    for where, bucket in templates.resources("AWS::S3::Bucket"):
        block = bucket.get("PublicAccessBlockConfiguration", {})
        if [block.get(key) for key in ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")] != [True] * 4:
            yield f"{where}: may become public"
    for where, policy in templates.resources("AWS::S3::BucketPolicy"):
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow" and (statement["Principal"] == "*" or "*" in texts(statement["Principal"])):
                yield f"{where}: allows everybody"
    for where, service in templates.resources("AWS::ECS::Service"):
        configuration = service.get("NetworkConfiguration", {}).get("AwsvpcConfiguration", {})
        if configuration.get("AssignPublicIp", "ENABLED") != "DISABLED":
            yield f"{where}: tasks get public addresses"
        if imports(configuration.get("Subnets")) != ["${Name}-network-PrivateSubnets"]:
            yield f"{where}: tasks are not in the private subnets"
    for where, subnets in templates.resources("AWS::RDS::DBSubnetGroup"):
        if imports(subnets["SubnetIds"]) != ["${Name}-network-PrivateSubnets"]:
            yield f"{where}: the database is not in the private subnets"
    for where, subnet in network.resources("AWS::EC2::Subnet"):
        if subnet.get("MapPublicIpOnLaunch"):
            yield f"{where}: gives public addresses by itself"
    for name in ("TaskSecurityGroup", "DatabaseSecurityGroup", "EndpointSecurityGroup"):
        for ingress in network.resource(name).get("SecurityGroupIngress", []):
            if "CidrIp" in ingress or "SourceSecurityGroupId" not in ingress:
                yield f"network.{name}: open to addresses instead of a group"
    for where, ingress in network.resources("AWS::EC2::SecurityGroupIngress"):
        if ingress["GroupId"] != {"Ref": "LoadBalancerSecurityGroup"} and "SourceSecurityGroupId" not in ingress:
            yield f"{where}: opens a group of tasks or of the database to addresses"
        if ingress.get("CidrIp") == "0.0.0.0/0" or "CidrIpv6" in ingress:
            yield f"{where}: open to everybody"
    private = {association["RouteTableId"]["Ref"] for _, association in network.resources("AWS::EC2::SubnetRouteTableAssociation")
               if association["SubnetId"]["Ref"].startswith("Private")}
    for where, route in network.resources("AWS::EC2::Route"):
        if route["RouteTableId"]["Ref"] in private and "GatewayId" in route:
            yield f"{where}: a private subnet leads to the internet gateway"


@rule
def an_internet_facing_load_balancer_has_a_certificate(templates: Templates) -> Iterator[str]:
    for one in templates["cluster"].body.get("Rules", {}).values():
        if one.get("RuleCondition") == {"Fn::Equals": [{"Ref": "Scheme"}, "internet-facing"]}:
            if {"Fn::Not": [{"Fn::Equals": [{"Ref": "CertificateArn"}, ""]}]} in [each["Assert"] for each in one["Assertions"]]:
                return
    yield "cluster: passwords may cross the internet in the clear"


@rule
def uploads_do_not_go_through_nat(templates: Templates) -> Iterator[str]:
    """A gateway endpoint in the route table of every private subnet."""
    network = templates["network"]
    tables = {association["RouteTableId"]["Ref"] for _, association in network.resources("AWS::EC2::SubnetRouteTableAssociation")
              if association["SubnetId"]["Ref"].startswith("Private")}
    served = {table["Ref"] for _, endpoint in network.resources("AWS::EC2::VPCEndpoint")
              if endpoint.get("VpcEndpointType") == "Gateway" and ".s3" in str(endpoint["ServiceName"]) for table in endpoint["RouteTableIds"]}
    for table in tables - served:
        yield f"network.{table}: no way to S3 but NAT"


@rule
def two_zones_carry_everything(templates: Templates) -> Iterator[str]:
    for side in ("Public", "Private"):
        zones = {str(subnet["AvailabilityZone"]) for where, subnet in templates["network"].resources("AWS::EC2::Subnet") if f".{side}" in where}
        if len(zones) < 2:
            yield f"network: the {side.lower()} subnets are in one zone"


@rule
def each_service_has_its_paths(templates: Templates) -> Iterator[str]:
    """Prefix and everything below it, distinct priorities, the key set with auth; what tasks say to operators is not routed."""
    service = templates["service"]
    mapping = service.body["Mappings"]["Services"]
    names = service.parameter("Service")["AllowedValues"]
    if set(mapping) != set(names):
        yield f"service: paths of {sorted(mapping)}, services {sorted(names)}"
    if len({one["Priority"] for one in mapping.values()}) != len(mapping):
        yield "service: two rules have one priority"
    if {name: one["Path"] for name, one in mapping.items()} != {"auth": "/v1/auth", "actor": "/v1/actors", "document": "/v1/documents"}:
        yield "service: the paths are not those of the API"
    patterns = service.resource("Rule")["Conditions"][0]["PathPatternConfig"]["Values"]
    path = {"Fn::FindInMap": ["Services", {"Ref": "Service"}, "Path"]}
    wanted = [path, {"Fn::Join": ["", [path, "/*"]]}]
    if [one for one in patterns if "Fn::If" not in one] != wanted:
        yield "service: the rule does not take the prefix and what is below it, and nothing else"
    if list(alternatives(patterns[-1])) != ["/.well-known/jwks.json"]:
        yield "service: the key set is not routed to auth alone"
    if templates["cluster"].resource("Listener")["DefaultActions"][0].get("Type") != "fixed-response":
        yield "cluster: unknown paths reach a service"


# ---- All of it ----------------------------------------------------------------------------------------------------------------------


@rule
def what_is_imported_is_exported(templates: Templates) -> Iterator[str]:
    services = templates["service"].parameter("Service")["AllowedValues"]
    exported = {output["Export"]["Name"]["Fn::Sub"].replace("${AWS::StackName}", "${Name}-" + template.name)
                for template in templates.all.values() for output in template.body.get("Outputs", {}).values() if "Export" in output}
    imported = {(template.name, name.replace("${Service}", one))
                for template in templates.all.values() for name in imports(template.body) for one in services}
    for stack, name in sorted(imported):
        if name not in exported:
            yield f"{stack}: imports {name}, which no stack exports"


@rule
def an_export_does_not_change_with_a_setting(templates: Templates) -> Iterator[str]:
    """CloudFormation updates no export that another stack imports, so that such a setting could never be changed."""
    for template in templates.all.values():
        for name, output in template.body.get("Outputs", {}).items():
            if "Export" in output and any(isinstance(value, dict) and "Fn::If" in value for value in walk(output["Value"])):
                yield f"{template.name}: {name} is exported and depends on a setting"


@rule
def a_name_fits_everything_that_bears_it(templates: Templates) -> Iterator[str]:
    """Repositories take no two hyphens in a row and none at the end, load balancers no `internal-`, target groups 32 characters."""
    for template in templates.all.values():
        name = template.parameter("Name")
        pattern = re.compile(name["AllowedPattern"])
        for good in ("datum", "d", "load-test-2"):
            if not pattern.fullmatch(good):
                yield f"{template.name}: refuses {good}"
        for bad in ("datum-", "a--b", "internal-datum", "2datum", "Datum"):
            if pattern.fullmatch(bad):
                yield f"{template.name}: takes {bad}"
        if name.get("MaxLength", 999) + len("-document") > 32:
            yield f"{template.name}: takes a name that is too long for a target group"


@rule
def the_load_generator_finds_its_tools(templates: Templates) -> Iterator[str]:
    """For the task's own processor, and the bucket in its own region."""
    for where, _, _, container in templates["loadgen"].tools():
        if not container["Image"]["Fn::Sub"][0].endswith("Tag}-${Architecture}"):
            yield f"{where}: takes an image for any processor"
        if container["Name"] != "load":
            regions = environment(container)
            if [regions.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")] != [[{"Ref": "AWS::Region"}]] * 2:
                yield f"{where}: does not know its region"


@rule
def what_holds_data_says_what_becomes_of_it(templates: Templates) -> Iterator[str]:
    stateful = {"AWS::S3::Bucket", "AWS::RDS::DBInstance", "AWS::RDS::DBCluster", "AWS::Cognito::UserPool", "AWS::Logs::LogGroup"}
    for template in templates.all.values():
        for logical, resource in template.body["Resources"].items():
            if resource["Type"] in stateful and not {"DeletionPolicy", "UpdateReplacePolicy"} <= set(resource):
                yield f"{template.name}.{logical}: has no policy for its end"


@rule
def a_parameter_of_one_name_has_one_meaning(templates: Templates) -> Iterator[str]:
    """`--set KEY=VALUE` goes to every stack that has the key."""
    seen: dict[str, tuple[str, Any]] = {}
    for template in templates.all.values():
        for name, definition in template.body["Parameters"].items():
            meaning = (definition["Type"], definition.get("Default"), definition.get("AllowedValues"), definition.get("AllowedPattern"))
            where, other = seen.setdefault(name, (template.name, meaning))
            if other != meaning:
                yield f"{name} is one thing in {where} and another in {template.name}"


@rule
def what_the_emulator_lacks_is_left_out_for_it(templates: Templates) -> Iterator[str]:
    lacking = re.compile(r"AWS::EC2::(EIP|NatGateway|SecurityGroupIngress)$|AWS::ApplicationAutoScaling::")
    for template in templates.all.values():
        for logical, resource in template.body["Resources"].items():
            if lacking.match(resource["Type"]):
                if not _needs_reality(template, resource.get("Condition")):
                    yield f"{template.name}.{logical}: is not behind IsReal"


def _needs_reality(template: Template, condition: str | None) -> bool:
    if condition == "IsReal":
        return template.body["Conditions"].get("IsReal") == {"Fn::Equals": [{"Ref": "Emulated"}, "false"]}
    definition = template.body.get("Conditions", {}).get(condition or "", {})
    return any(_needs_reality(template, one.get("Condition")) for one in definition.get("Fn::And", []) if isinstance(one, dict) and one.get("Condition"))
