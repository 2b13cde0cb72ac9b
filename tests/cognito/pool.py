"""Makes a user pool and an app client in an emulator of Amazon Cognito, and prints the settings of Datum that belong to them, one
`NAME=value` a line.

    pool.py [ENDPOINT] [ENDPOINT-AS-THE-SERVICES-SEE-IT]     default: http://127.0.0.1:4566 for both

Accounts are confirmed by the auth service (`COGNITO_CONFIRMATION=admin`), since an emulator sends no mail.
"""

import json
import sys
import urllib.request

REGION = "us-east-1"
# An emulator looks at the form of credentials and not at their signature.
CREDENTIALS = f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/cognito-idp/aws4_request, SignedHeaders=host, Signature=00"


def call(endpoint, operation, request):
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "x-amz-target": f"AWSCognitoIdentityProviderService.{operation}",
        "authorization": CREDENTIALS,
    }
    asked = urllib.request.Request(endpoint, json.dumps(request).encode(), headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def main():
    endpoint = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:4566"
    seen = sys.argv[2] if len(sys.argv) > 2 else endpoint
    pool = call(endpoint, "CreateUserPool", {
        "PoolName": "datum",
        "UsernameAttributes": ["email"],
        "AutoVerifiedAttributes": ["email"],
        "Policies": {"PasswordPolicy": {
            "MinimumLength": 8, "RequireUppercase": False, "RequireLowercase": False,
            "RequireNumbers": False, "RequireSymbols": False,
        }},
    })["UserPool"]["Id"]
    client = call(endpoint, "CreateUserPoolClient", {
        "UserPoolId": pool,
        "ClientName": "datum",
        "GenerateSecret": False,
        "ExplicitAuthFlows": ["ALLOW_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"],
        "PreventUserExistenceErrors": "ENABLED",
        "EnableTokenRevocation": True,
    })["UserPoolClient"]["ClientId"]
    settings = {
        "AUTH_IDENTITY_PROVIDER": "cognito",
        # Emulators sign with AWS's issuer.
        "AUTH_ISSUER": f"https://cognito-idp.{REGION}.amazonaws.com/{pool}",
        "AUTH_JWKS_URL": f"{seen}/{pool}/.well-known/jwks.json",
        "COGNITO_USER_POOL_ID": pool,
        "COGNITO_CLIENT_ID": client,
        "COGNITO_ENDPOINT_URL": seen,
        "COGNITO_CONFIRMATION": "admin",
        # For `datum up`, and under the names that docker-compose.yml takes them by.
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "COGNITO_AWS_ACCESS_KEY_ID": "test",
        "COGNITO_AWS_SECRET_ACCESS_KEY": "test",
    }
    for name, value in settings.items():
        print(f"{name}={value}")


if __name__ == "__main__":
    main()
